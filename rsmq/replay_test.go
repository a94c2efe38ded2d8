package rsmq

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/jsnumber"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// departure is a step whose result is another one here, on purpose.
type departure struct {
	why        string
	node, ours string // the result, or an error's name
	end        bool   // what follows in the scenario builds on Node's result
}

// departures from the Node package, by scenario and step.
var departures = map[string]map[int]departure{
	"foreign_binary_body": {
		4: {why: "a body that is no UTF-8 is returned as it is stored", node: "A\ufffd\ufffd\x00\ufffdB", ours: "A\xff\xfe\x00\x80B"},
	},
	"reserved_name_QUEUES": {
		1: {why: "the name would put messages into the key that lists all queues", node: "1", ours: "invalidFormat", end: true},
	},
	"unicode_and_control_bodies": {
		6: {why: "a lone surrogate is no text in Go, and not sent as another character", node: "<id3>", ours: "messageNotString", end: true},
	},
}

// The scenarios that were recorded from the Node package give the same results, errors, published messages and Redis state here.
func TestVectors(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	rc := redistest.Dial(t, server.URL())
	for _, s := range loadVectors(t).Scenarios {
		if s.Name == "legacy_0_7_2" {
			continue // what an older client does: no target
		}
		t.Run(s.Name, func(t *testing.T) {
			if n := untypable(s); n > 0 {
				t.Logf("%d of %d steps have arguments that only JavaScript has; the nearest that Go has takes their place", n, len(s.Steps))
			}
			if err := rc.Do(t.Context(), rc.B().Flushall().Build()).Error(); err != nil {
				t.Fatal(err)
			}
			r := newReplay(t, rc, s)
			for i, step := range s.Steps {
				if end := r.step(step); end {
					t.Logf("the last %d of %d steps build on that result, and are left out", len(s.Steps)-i-1, len(s.Steps))
					break
				}
			}
		})
	}
}

// replay is one scenario under way.
type replay struct {
	t       *testing.T
	s       scenario
	redis   rueidis.Client
	clients map[string]*Client
	heard   *listener
	ids     []string
	state   map[string]any // expected
	clock   string
}

func newReplay(t *testing.T, rc rueidis.Client, s scenario) *replay {
	t.Helper()
	r := &replay{t: t, s: s, redis: rc, clients: map[string]*Client{}, heard: listen(t, rc), state: map[string]any{}}
	for name, o := range s.Clients {
		cfg := Config{Realtime: o.Realtime}
		if o.NS != nil {
			cfg.Namespace, cfg.NoNamespace = *o.NS, *o.NS == ""
		}
		c, err := New(rc, cfg)
		if err != nil {
			t.Fatal(err)
		}
		c.pinned = func() string { return r.clock }
		r.clients[name] = c
	}
	return r
}

// step makes one call and compares everything with what was recorded. end: what follows builds on a departure.
func (r *replay) step(st vectorStep) (end bool) {
	r.t.Helper()
	r.clock = fmt.Sprintf("%d %d", st.Clock.S, st.Clock.US)
	where := fmt.Sprintf("step %d, %s", st.Step, st.Op)
	result, err := r.call(st)
	var refused *Error
	if err != nil && !errors.As(err, &refused) {
		r.t.Fatalf("%s: %v", where, err)
	}
	if d, ok := departures[r.s.Name][st.Step]; ok {
		r.departed(st, d, result, refused)
		if d.end {
			return true
		}
	} else if diff := cmp.Diff(st.Error, refused); diff != "" {
		r.t.Fatalf("%s: error (-Node +Go):\n%s", where, diff)
	} else if st.Error == nil {
		r.same(where+": result", masked(asJSON(r.t, st.Result), r.ids), asJSON(r.t, result))
	}
	var published []string
	for _, p := range st.Published {
		published = append(published, p.Channel+" "+p.Payload)
	}
	if diff := cmp.Diff(published, r.heard.since(r.t)); diff != "" {
		r.t.Errorf("%s: published (-Node +Go):\n%s", where, diff)
	}
	r.compareState(where, st)
	return false
}

func (r *replay) departed(st vectorStep, d departure, result any, refused *Error) {
	r.t.Helper()
	node, ours := outcome(st.Result, st.Error), outcome(result, refused)
	if node != d.node || ours != d.ours {
		r.t.Errorf("step %d, %s: Node gave %q and Go %q, want %q and %q, since %s", st.Step, st.Op, node, ours, d.node, d.ours, d.why)
	}
	r.t.Logf("step %d, %s: Node gives %q, Go %q: %s", st.Step, st.Op, node, ours, d.why)
}

// outcome is an error's name, a message's body, or any other result.
func outcome(result any, refused *Error) string {
	if refused != nil {
		return refused.Name
	}
	if m, ok := result.(map[string]any); ok {
		result = m["message"]
	}
	return fmt.Sprint(result)
}

func (r *replay) same(what, want, got string) {
	r.t.Helper()
	var w, g any
	if err := errors.Join(json.Unmarshal([]byte(want), &w), json.Unmarshal([]byte(got), &g)); err != nil {
		r.t.Fatal(err)
	}
	if diff := cmp.Diff(w, g); diff != "" {
		r.t.Fatalf("%s (-Node +Go):\n%s", what, diff)
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // ids stand between < and >
	if err := encoder.Encode(v); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// call makes the call of a step, and returns what the Node package's callback would get.
func (r *replay) call(st vectorStep) (any, error) {
	name := st.Client
	if name == "" {
		name = "main"
	}
	c, ctx := r.clients[name], r.t.Context()
	if st.Op == "raw" {
		return r.raw(st.Args)
	}
	a := r.args(st.Args)
	switch st.Op {
	case "createQueue":
		return one(true, c.CreateQueue(ctx, a.name("qname"), QueueOptions{
			VisibilityTimeout: a.seconds("vt"), Delay: a.seconds("delay"), MaxSize: a.size("maxsize"),
		}))
	case "listQueues":
		names, err := c.ListQueues(ctx)
		slices.Sort(names)
		return append([]string{}, names...), err
	case "deleteQueue":
		return one(true, c.DeleteQueue(ctx, a.name("qname")))
	case "getQueueAttributes":
		return attributesResult(c.GetQueueAttributes(ctx, a.name("qname")))
	case "setQueueAttributes":
		return attributesResult(c.SetQueueAttributes(ctx, a.name("qname"), QueueChanges{
			VisibilityTimeout: a.seconds("vt"), Delay: a.seconds("delay"), MaxSize: a.size("maxsize"),
		}))
	case "sendMessage":
		id, err := c.SendMessage(ctx, a.name("qname"), a.body(), SendOptions{Delay: a.seconds("delay")})
		if err == nil {
			r.sent(id)
		}
		return id, err
	case "receiveMessage":
		m, ok, err := c.ReceiveMessage(ctx, a.name("qname"), ReceiveOptions{VisibilityTimeout: a.seconds("vt")})
		return messageResult(m, ok, err)
	case "popMessage":
		m, ok, err := c.PopMessage(ctx, a.name("qname"))
		return messageResult(m, ok, err)
	case "deleteMessage":
		return one(c.DeleteMessage(ctx, a.name("qname"), a.text("id")))
	case "changeMessageVisibility":
		return one(c.ChangeMessageVisibility(ctx, a.name("qname"), a.text("id"), *a.seconds("vt")))
	}
	r.t.Fatalf("unknown operation %q", st.Op)
	return nil, nil
}

// sent notes an id, whose beginning is exact.
func (r *replay) sent(id string) {
	r.t.Helper()
	r.ids = append(r.ids, id)
	want := r.s.IDs["id"+decimal(int64(len(r.ids)))].TimePrefix
	if len(id) != idLength || !strings.HasPrefix(id, want) || checkID(id) != nil {
		r.t.Errorf("id %q, want %d characters that begin with %s", id, idLength, want)
	}
}

func one(ok bool, err error) (any, error) {
	if ok {
		return 1, err
	}
	return 0, err
}

// attributesResult leaves out what the Node package does not count.
func attributesResult(a Attributes, err error) (any, error) {
	var fields map[string]any
	text, marshalErr := json.Marshal(a)
	if err = errors.Join(err, marshalErr, json.Unmarshal(text, &fields)); err != nil {
		return nil, err
	}
	delete(fields, "visiblemsgs")
	return fields, nil
}

// messageResult writes a long body as the file does. One that is no UTF-8 stays as it is, for the table of departures.
func messageResult(m Message, ok bool, err error) (any, error) {
	switch {
	case !ok:
		return map[string]any{}, err
	case !utf8.ValidString(m.Body):
		return map[string]any{"message": m.Body}, err
	case len(m.Body) > 65536:
		return map[string]any{
			"id": m.ID, "message": digest(m.Body), "rc": m.ReceiveCount, "fr": m.FirstReceived.UnixMilli(), "sent": sentMillis(m.Sent),
		}, err
	}
	return m, err
}

// raw is a command of another program.
func (r *replay) raw(args json.RawMessage) (any, error) {
	var words []any
	if err := decode(args, &words); err != nil {
		return nil, err
	}
	command := make([]string, len(words))
	for i, w := range words {
		command[i] = expand(r.t, w, r.ids).(string)
	}
	return r.redis.Do(r.t.Context(), r.redis.B().Arbitrary(command...).Build()).AsInt64()
}

// arguments of a call, as the Node package gets them.
type arguments struct {
	t      *testing.T
	values map[string]any
}

func (r *replay) args(raw json.RawMessage) arguments {
	a := arguments{r.t, map[string]any{}}
	if err := decode(raw, &a.values); err != nil {
		r.t.Fatal(err)
	}
	for name, v := range a.values {
		a.values[name] = expand(r.t, v, r.ids)
	}
	return a
}

func decode(raw json.RawMessage, into any) error {
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.UseNumber()
	return decoder.Decode(into)
}

// name is a text; a number is its digits, but for 0, which is nothing.
func (a arguments) name(key string) string {
	if n, ok := a.values[key].(json.Number); ok && n.String() != "0" {
		return n.String()
	}
	return a.text(key)
}

func (a arguments) text(key string) string {
	s, _ := a.values[key].(string)
	return s
}

// body is a text; what is none is mapped to the nearest that Go has: bytes that are no UTF-8.
func (a arguments) body() string {
	if s, ok := a.values["message"].(string); ok {
		return s
	}
	return "\xff"
}

// number reads a number as the Node package does; one that cannot be read is mapped to one that is refused.
func (a arguments) number(key string) (n int64, given bool) {
	v, given := a.values[key]
	if !given || v == nil {
		return 0, false
	}
	n, ok := jsnumber.Parse(fmt.Sprint(v))
	if !ok {
		n = -1 << 20
	}
	return n, true
}

func (a arguments) seconds(key string) *time.Duration {
	n, given := a.number(key)
	if !given {
		return nil
	}
	return Seconds(int(n))
}

func (a arguments) size(key string) *int {
	n, given := a.number(key)
	if !given {
		return nil
	}
	return Size(int(n))
}
