//go:build interop

package rsmq

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

// twins are a Go client and a Node process, each on a Redis of its own, under one clock.
type twins struct {
	t         *testing.T
	rnd       *rand.Rand
	c         *Client
	node      *peer
	clock     *clockProxy
	us        int64
	redis     [2]rueidis.Client // Go's, Node's
	ids       [2][]string       // of the messages sent, in the same order
	performed map[string]int
}

// propertySteps is how many operations the two must agree on.
const propertySteps = 2500

// Random operations leave Go and Node with the same results and the same state, after each one.
func TestInteropProperty(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("RSMQ_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("RSMQ_SEED=%d", seed)
	w := newTwins(t, seed)
	for i := range propertySteps {
		w.us += w.pause()
		w.clock.set(w.us/1e6, w.us%1e6)
		name, args := w.choose()
		w.performed[name]++
		what := fmt.Sprintf("step %d, %s %v", i, name, args)
		if len(what) > 300 {
			what = what[:300] + "..."
		}
		w.same(what, name, args)
		if t.Failed() {
			break
		}
	}
	t.Logf("%d steps: %v", propertySteps, w.performed)
}

func newTwins(t *testing.T, seed uint64) *twins {
	t.Helper()
	w := &twins{t: t, rnd: rand.New(rand.NewPCG(seed, 1)), us: 1700000000e6, performed: map[string]int{}}
	var servers [2]*redistest.Server
	for i := range servers {
		servers[i] = redistest.Start(t, redistest.Options{})
		w.redis[i] = redistest.Dial(t, servers[i].URL())
	}
	w.c = over(t, w.redis[0], Config{})
	w.c.pinned = func() string { return fmt.Sprintf("%d %d", w.us/1e6, w.us%1e6) }
	w.clock = newClockProxy(t, servers[1].Addr())
	w.node = startPeer(t, "rsmq", w.clock.addr(), "rsmq", false)
	return w
}

// pause is how far the clock goes on: mostly little, now and then seconds. At least a microsecond, so that the time in an id tells its
// place.
func (w *twins) pause() int64 {
	switch w.rnd.IntN(4) {
	case 0:
		return 1 + w.rnd.Int64N(10)
	case 1:
		return 1 + w.rnd.Int64N(5000)
	case 2:
		return 1 + w.rnd.Int64N(500_000)
	}
	return 1 + w.rnd.Int64N(5_000_000)
}

func pick[T any](w *twins, from ...T) T { return from[w.rnd.IntN(len(from))] }

// choose makes up an operation, in the words of the Node package.
func (w *twins) choose() (string, map[string]any) {
	q := pick(w, "a", "a", "a", "a", "b", "b", "c", "nope", "bad name")
	args := map[string]any{"qname": q}
	maybe := func(name string, values ...any) {
		if v := pick(w, values...); v != nil {
			args[name] = v
		}
	}
	switch n := w.rnd.IntN(100); {
	case n < 8:
		maybe("vt", nil, nil, 0, 1, 2, 30, 9999999, 10000000, -1)
		maybe("delay", nil, nil, nil, 0, 1, 3, -1)
		maybe("maxsize", nil, nil, 1024, 65536, -1, 1023, 65537)
		return "createQueue", args
	case n < 10:
		return "deleteQueue", args
	case n < 15:
		maybe("vt", nil, 0, 1, 5, -1, 10000000)
		maybe("delay", nil, nil, 0, 2, -1)
		maybe("maxsize", nil, nil, 1024, 2048, -1, 5)
		return "setQueueAttributes", args
	case n < 20:
		return "getQueueAttributes", args
	case n < 22:
		return "listQueues", map[string]any{}
	case n < 50:
		args["message"] = w.body()
		maybe("delay", nil, nil, nil, 0, 1, 4, -1)
		return "sendMessage", args
	case n < 68:
		maybe("vt", nil, nil, nil, 0, 1, 3, 30, -1)
		return "receiveMessage", args
	case n < 78:
		return "popMessage", args
	case n < 90:
		args["id"] = w.id()
		return "deleteMessage", args
	case n < 97:
		args["id"] = w.id()
		args["vt"] = pick(w, 0, 1, 2, 60, -1)
		return "changeMessageVisibility", args
	}
	return "raw", map[string]any{"corruption": w.rnd.IntN(7)}
}

func (w *twins) body() string {
	unit := pick(w, "x", "é", "€", "😀", "\x00", "\n", `"`)
	return strings.Repeat(unit, pick(w, 0, 1, 3, 200, 512, 513, 1024, 1025))
}

// id is the number of a message that was sent, written so that each twin finds its own, or an id that is none.
func (w *twins) id() string {
	if n := len(w.ids[0]); n > 0 && w.rnd.IntN(8) > 0 {
		return fmt.Sprintf("<%d>", max(0, n-1-w.rnd.IntN(12)))
	}
	return pick(w, someID, "too-short", "")
}

// corrupt does to both what another program may do.
func (w *twins) corrupt(kind int) {
	hash, set := "rsmq:a:Q", "rsmq:a"
	command := [][]string{
		{"HDEL", hash, "maxsize"}, {"HSET", hash, "maxsize", "1024.7"}, {"HSET", hash, "vt", "99999999"}, {"HSET", hash, "delay", "abc"},
		{"ZADD", set, "1", "gqll7vatqf0000000000000000000009"}, {"HSET", hash, "gqll7vatqf0000000000000000000009", "foreign"},
		{"HSET", hash, "delay", "0", "vt", "3", "maxsize", "1024"},
	}[kind]
	for _, rc := range w.redis {
		if err := rc.Do(w.t.Context(), rc.B().Arbitrary(command...).Build()).Error(); err != nil {
			w.t.Fatal(err)
		}
	}
}

// same has both do it, and compares results, errors and state.
func (w *twins) same(what, name string, args map[string]any) {
	w.t.Helper()
	if name == "raw" {
		w.corrupt(args["corruption"].(int))
		return
	}
	theirs, theirErr := w.node.call(name, w.with(1, args))
	ours, err := w.call(name, w.with(0, args))
	var ourErr *Error
	if err != nil && !errors.As(err, &ourErr) {
		w.t.Fatalf("%s: %v", what, err)
	}
	if diff := cmp.Diff(theirErr, ourErr); diff != "" {
		w.t.Fatalf("%s: error (-Node +Go):\n%s", what, diff)
	}
	if name == "sendMessage" && err == nil {
		var id string
		if err := json.Unmarshal(theirs, &id); err != nil {
			w.t.Fatal(err)
		}
		w.ids[0], w.ids[1] = append(w.ids[0], ours.(string)), append(w.ids[1], id)
		if ours.(string)[:timeLength] != id[:timeLength] {
			w.t.Fatalf("%s: ids %s and %s", what, id, ours)
		}
	}
	if name == "listQueues" {
		theirs = sorted(w.t, theirs) // they come in any order
	}
	if theirErr == nil {
		w.equal(what+": result", w.masked(1, string(theirs)), w.masked(0, asJSON(w.t, ours)))
	}
	w.equal(what+": state", w.masked(1, asJSON(w.t, dump(w.t, w.redis[1]))), w.masked(0, asJSON(w.t, dump(w.t, w.redis[0]))))
}

func sorted(t *testing.T, list json.RawMessage) json.RawMessage {
	t.Helper()
	var names []string
	if err := json.Unmarshal(list, &names); err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return json.RawMessage(asJSON(t, names))
}

func (w *twins) equal(what, theirs, ours string) {
	w.t.Helper()
	var a, b any
	if err := errors.Join(json.Unmarshal([]byte(theirs), &a), json.Unmarshal([]byte(ours), &b)); err != nil {
		w.t.Fatal(err)
	}
	if diff := cmp.Diff(a, b); diff != "" {
		w.t.Fatalf("%s (-Node +Go):\n%s", what, diff)
	}
}

// with puts a twin's own ids into the arguments.
func (w *twins) with(twin int, args map[string]any) map[string]any {
	out := map[string]any{}
	for name, v := range args {
		if text, ok := v.(string); ok && name == "id" && strings.HasPrefix(text, "<") {
			n, err := strconv.Atoi(strings.Trim(text, "<>"))
			if err != nil {
				w.t.Fatal(err)
			}
			v = w.ids[twin][n]
		}
		out[name] = v
	}
	return out
}

// masked puts numbers in the place of ids.
func (w *twins) masked(twin int, text string) string {
	for i, id := range w.ids[twin] {
		if strings.Contains(text, id) {
			text = strings.ReplaceAll(text, id, fmt.Sprintf("id%d", i))
		}
	}
	return text
}

// call makes the call in Go.
func (w *twins) call(name string, args map[string]any) (any, error) {
	raw, err := json.Marshal(args)
	if err != nil {
		w.t.Fatal(err)
	}
	r := &replay{t: w.t, clients: map[string]*Client{"main": w.c}, s: scenario{IDs: map[string]struct {
		TimePrefix string `json:"time_prefix"`
	}{}}}
	return r.call(vectorStep{Op: name, Args: raw})
}
