package xstreamq_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// A dead letter is shown with everything it says, its body byte for byte.
func TestDeadLettersShowEverything(t *testing.T) {
	t.Parallel()
	r := newDeadRig(t)
	r.buryFields("5-0", "x", "1", "body", "a\x00\xff", "body", "b", "h:k", "v", "h:", "", "oid", "d5-ff", "pub", "4", "rc", "4", "lc", "1",
		"err", "boom", "reason", "failed", "at", "1700000000000", "from", "8-0", "by", "w~1")
	r.buryFields("6-0", "oid", "3-0", "reason", "body-lost")
	want := []xstreamq.DeadMessage{
		{
			Queue: "q", Group: "g", ID: "5-0", OriginalID: "d5-ff", Body: []byte("a\x00\xff"), Header: map[string]string{"k": "v", "": ""},
			Reason: xstreamq.Failed, Error: "boom", Failures: 4, LostLeases: 1, At: time.UnixMilli(1700000000000), From: "8-0", By: "w~1",
		},
		{Queue: "q", Group: "g", ID: "6-0", OriginalID: "3-0", Reason: xstreamq.BodyLost},
	}
	var got []xstreamq.DeadMessage
	for d, err := range r.client.DeadLetters(t.Context(), "q", "g", xstreamq.DeadFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, d)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for i, id := range []string{"5-0", "0006-0"} {
		d, err := r.client.DeadLetterByID(t.Context(), "q", "g", id)
		if diff := cmp.Diff(want[i], d); diff != "" || err != nil {
			t.Errorf("%v, -want +got:\n%s", err, diff)
		}
	}
}

// All are shown, each once, the oldest first; those that come while the loop runs are not.
func TestDeadLettersEndWhereTheyBegan(t *testing.T) {
	t.Parallel()
	r := newDeadRig(t)
	want := r.bury(1, 2100)
	var got []string
	for d, err := range r.client.DeadLetters(t.Context(), "q", "g", xstreamq.DeadFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, d.ID); len(got) == 1 {
			r.bury(2101, 2200)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if n := r.len(r.keys.DLQ); n != 2200 {
		t.Errorf("%d dead letters are left", n)
	}
	for d, err := range r.client.DeadLetters(t.Context(), "q", "g", xstreamq.DeadFilter{}) {
		if d.ID != "1-0" || err != nil {
			t.Errorf("begins with %q, %v", d.ID, err)
		}
		break // a loop may be left at any time
	}
}

func TestDeadFilter(t *testing.T) {
	t.Parallel()
	r := newDeadRig(t)
	now := r.now()
	ago := func(d time.Duration) string { return fmt.Sprint(now.Add(-d).UnixMilli()) }
	r.buryFields("1-0", "body", `{"a":{"b":[1,{"x y":"<&>"}]},"n":1.50,"s":"1.50"}`, "h:tenant", "acme", "h:empty", "", "reason", "failed",
		"err", "dial tcp 10.0.0.1: refused", "rc", "4", "at", ago(time.Hour))
	r.buryFields("2-0", "body", `{"a":{"b":[]},"n":2,"nil":null}`, "h:tenant", "other", "reason", "rejected", "err", "no such order 17", "rc", "2",
		"at", ago(time.Minute))
	r.buryFields("3-0", "body", "not JSON", "reason", "undecodable", "err", "invalid character", "at", ago(30*24*time.Hour))
	r.buryFields("4-0", "body", "{}", "reason", "lost-lease", "rc", "2", "lc", "6", "err", "lease lost by w", "at", ago(2*time.Minute))
	r.buryFields(ago(3*time.Hour)+"-7", "x", "y") // a stranger's: it died when its id says
	foreign := ago(3*time.Hour) + "-7"
	r.buryFields("18446744073709551615-1", "body", "[]", "reason", "failed") // and that is no time
	const far = "18446744073709551615-1"

	json := func(path, want string) xstreamq.DeadFilter {
		return xstreamq.DeadFilter{JSON: map[string]string{path: want}}
	}
	header := func(name, want string) xstreamq.DeadFilter {
		return xstreamq.DeadFilter{Header: map[string]string{name: want}}
	}
	cases := []struct {
		name string
		f    xstreamq.DeadFilter
		want string
	}{
		{"nothing set", xstreamq.DeadFilter{}, "1-0 2-0 3-0 4-0 " + foreign + " " + far},
		{"a reason", xstreamq.DeadFilter{Reasons: []xstreamq.Reason{xstreamq.Rejected}}, "2-0"},
		{"reasons", xstreamq.DeadFilter{Reasons: []xstreamq.Reason{xstreamq.Rejected, xstreamq.Failed}}, "1-0 2-0 " + far},
		{"no reason given", xstreamq.DeadFilter{Reasons: []xstreamq.Reason{""}}, foreign},
		{"part of the error", xstreamq.DeadFilter{Error: "tcp 10."}, "1-0"},
		{"pattern", xstreamq.DeadFilter{ErrorPattern: regexp.MustCompile(`order \d+$`)}, "2-0"},
		{"both", xstreamq.DeadFilter{Error: "order", ErrorPattern: regexp.MustCompile(`^dial`)}, ""},
		{"older", xstreamq.DeadFilter{OlderThan: 30 * time.Minute}, "1-0 3-0 " + foreign},
		{"newer", xstreamq.DeadFilter{NewerThan: 30 * time.Minute}, "2-0 4-0 " + far},
		{"between", xstreamq.DeadFilter{OlderThan: 90 * time.Second, NewerThan: 2 * time.Hour}, "1-0 4-0"},
		{"attempts at least", xstreamq.DeadFilter{MinAttempts: 2}, "1-0 2-0 4-0"},
		{"attempts at most", xstreamq.DeadFilter{MaxAttempts: 4}, "1-0 2-0 3-0 " + foreign + " " + far},
		{"attempts exactly", xstreamq.DeadFilter{MinAttempts: 8, MaxAttempts: 8}, "4-0"},
		{"header", header("tenant", "acme"), "1-0"},
		{"header of any value", header("tenant", ""), "1-0 2-0"},
		{"header that is empty", header("empty", ""), "1-0"},
		{"header with another value", header("empty", "x"), ""},
		{"number as written", json("$.n", "1.50"), "1-0"},
		{"number written otherwise", json("$.n", "1.5"), ""},
		{"string", json("s", "1.50"), "1-0"},
		{"in a list", json(`a.b[1]["x y"]`, "<&>"), "1-0"},
		{"leads somewhere", json("$.a.b", ""), "1-0 2-0"},
		{"null is something", json("nil", ""), "2-0"},
		{"null", json("nil", "null"), "2-0"},
		{"list", json("$.a.b", "[]"), "2-0"},
		{"object", json("$.a.b[1]", `{"x y":"<&>"}`), "1-0"},
		{"whole body", json("$", "{}"), "4-0"},
		{"any JSON", json("$", ""), "1-0 2-0 4-0 " + far},
		{"two paths", xstreamq.DeadFilter{JSON: map[string]string{"n": "2", "a.b": "[]"}}, "2-0"},
		{"two paths, one does not hold", xstreamq.DeadFilter{JSON: map[string]string{"n": "2", "a.b[0]": ""}}, ""},
		{"match", xstreamq.DeadFilter{Match: func(d *xstreamq.DeadMessage) bool { return d.LostLeases > 0 }}, "4-0"},
		{"match is asked last", xstreamq.DeadFilter{Reasons: []xstreamq.Reason{xstreamq.Rejected}, Match: func(d *xstreamq.DeadMessage) bool {
			return d.ID == "2-0" || d.ID == "1-0"
		}}, "2-0"},
	}
	for _, c := range cases {
		got, err := r.deadIDs(c.f)
		if strings.Join(got, " ") != c.want || err != nil {
			t.Errorf("%s: %q, %v, want %q", c.name, got, err, c.want)
		}
	}
}

// All mistakes are named at once, whatever call gets the filter, and nothing is done.
func TestDeadFilterMistakes(t *testing.T) {
	t.Parallel()
	r := newDeadRig(t)
	r.bury(1, 3)
	bad := xstreamq.DeadFilter{
		OlderThan: -1, NewerThan: -1, MinAttempts: -1, MaxAttempts: -1, JSON: map[string]string{"a[": "", "": "x", "good": ""},
	}
	want := []string{"OlderThan", "NewerThan", "MinAttempts", "MaxAttempts", `"a["`, `JSON path ""`}
	_, walk := r.deadIDs(bad)
	_, redrive := r.client.RedriveAll(t.Context(), "q", "g", xstreamq.RedriveAllOptions{
		Filter: bad, Limit: -1, Rate: -1, Canary: -1, CanaryTimeout: -1,
	})
	_, purge := r.client.PurgeAll(t.Context(), "q", "g", xstreamq.PurgeAllOptions{Filter: bad, Limit: -1})
	for name, c := range map[string]struct {
		err  error
		more []string
	}{
		"DeadLetters": {walk, nil},
		"RedriveAll":  {redrive, []string{"Limit", "Rate", "Canary must", "CanaryTimeout"}},
		"PurgeAll":    {purge, []string{"Limit"}},
	} {
		if !errors.Is(c.err, xstreamq.ErrInvalidConfig) {
			t.Errorf("%s: %v", name, c.err)
			continue
		}
		for _, part := range slices.Concat(want, c.more) {
			if !strings.Contains(c.err.Error(), part) {
				t.Errorf("%s: the error does not name %s: %v", name, part, c.err)
			}
		}
	}
	if n := r.len(r.keys.DLQ); n != 3 {
		t.Errorf("%d dead letters are left", n)
	}
	for _, f := range []xstreamq.DeadFilter{{MinAttempts: 3, MaxAttempts: 2}, {OlderThan: time.Hour, NewerThan: time.Hour}} {
		if _, err := r.deadIDs(f); !errors.Is(err, xstreamq.ErrInvalidConfig) {
			t.Errorf("a filter that can choose nothing: %v", err)
		}
	}
}

// deadCalls are all calls about dead letters.
func deadCalls(c *xstreamq.Client) map[string]func(ctx context.Context, queue, group string) error {
	return map[string]func(ctx context.Context, queue, group string) error{
		"DeadLetters": func(ctx context.Context, queue, group string) error {
			for _, err := range c.DeadLetters(ctx, queue, group, xstreamq.DeadFilter{OlderThan: time.Second}) {
				if err != nil {
					return err
				}
			}
			return nil
		},
		"DeadLetterByID": func(ctx context.Context, queue, group string) error {
			_, err := c.DeadLetterByID(ctx, queue, group, "5-5")
			return err
		},
		"Redrive": func(ctx context.Context, queue, group string) error {
			_, err := c.Redrive(ctx, queue, group, []string{"5-5"}, xstreamq.RedriveOptions{})
			return err
		},
		"Redrive to the queue": func(ctx context.Context, queue, group string) error {
			_, err := c.Redrive(ctx, queue, group, []string{"5-5"}, xstreamq.RedriveOptions{ToQueue: true})
			return err
		},
		"RedriveAll": func(ctx context.Context, queue, group string) error {
			_, err := c.RedriveAll(ctx, queue, group, xstreamq.RedriveAllOptions{})
			return err
		},
		"Purge": func(ctx context.Context, queue, group string) error {
			_, err := c.Purge(ctx, queue, group, "5-5")
			return err
		},
		"PurgeAll": func(ctx context.Context, queue, group string) error {
			_, err := c.PurgeAll(ctx, queue, group, xstreamq.PurgeAllOptions{})
			return err
		},
	}
}

// An error says what is wrong, and with what.
func TestDeadLetterErrors(t *testing.T) {
	t.Parallel()
	r := newDeadRig(t)
	r.publish("a")
	r.ask("XGROUP", "CREATE", r.keys.Queue, "g", "0")
	r.ask("SET", r.prefix+"{q}.mistyped.dlq", "x")
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, call := range deadCalls(r.client) {
		check := func(ctx context.Context, queue, group string, want error, parts ...string) {
			t.Helper()
			err := call(ctx, queue, group)
			if want != nil && !errors.Is(err, want) || err == nil {
				t.Errorf("%s of %s, %s: %v, want %v", name, queue, group, err, want)
				return
			}
			for _, part := range parts {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%s of %s, %s: %v does not say %s", name, queue, group, err, part)
				}
			}
		}
		check(t.Context(), "q{", "g", xstreamq.ErrInvalidName, "queue")
		check(t.Context(), "q", "g h", xstreamq.ErrInvalidName, "group")
		check(t.Context(), "nothing", "g", xstreamq.ErrNoQueue, "nothing", `"g"`)
		check(t.Context(), "q", "nobody", xstreamq.ErrNoGroup, `"q"`, "nobody")
		check(t.Context(), "q", "mistyped", nil, "{q}.mistyped.dlq", "TYPE")
		check(cancelled, "q", "g", context.Canceled)

		err := call(t.Context(), "q", "g") // which has none
		if name == "DeadLetterByID" {
			if !errors.Is(err, xstreamq.ErrNoMessage) || !strings.Contains(err.Error(), "5-5") {
				t.Errorf("%s: %v", name, err)
			}
		} else if err != nil {
			t.Errorf("%s of a group without dead letters: %v", name, err)
		}
	}
}

// What is no id is refused before anything is done, wherever it stands in the list.
func TestWhatIsNoDeadLetterID(t *testing.T) {
	t.Parallel()
	r := newDeadRig(t)
	r.bury(1, 2)
	for _, bad := range []string{"", "1", "-", "+", "1-", "1-0-0", "(1-0", "d5-ff", "1-x", "99999999999999999999-0", "1 -0", "*", "0x1-0"} {
		_, one := r.client.DeadLetterByID(t.Context(), "q", "g", bad)
		_, redrive := r.client.Redrive(t.Context(), "q", "g", []string{"1-0", bad}, xstreamq.RedriveOptions{})
		_, purge := r.client.Purge(t.Context(), "q", "g", "1-0", bad)
		for _, err := range []error{one, redrive, purge} {
			if !errors.Is(err, xstreamq.ErrInvalidMessage) || !strings.Contains(err.Error(), fmt.Sprintf("%q", bad)) {
				t.Errorf("%q: %v", bad, err)
			}
		}
	}
	if n := r.len(r.keys.DLQ); n != 2 {
		t.Errorf("%d dead letters are left", n)
	}
}

// A call ends with its context, also when Redis has stopped to answer.
func TestDeadLetterCallsEndWithTheirContext(t *testing.T) {
	t.Parallel()
	proxy := redistest.NewProxy(t, redistest.URL(t))
	r := deadRigAt(t, proxy.URL(), redistest.Prefix(t))
	r.bury(1, 1)
	proxy.BlackHole()
	defer proxy.Pass()
	var wg sync.WaitGroup
	for name, call := range deadCalls(r.client) {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if err := call(ctx, "q", "g"); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	ended := make(chan struct{})
	go func() {
		wg.Wait()
		close(ended)
	}()
	leaseTake(t, ended, "the end of all calls")
}

// Attempts says how often a message was delivered, whatever ended it.
func TestAttemptsOfWhatTheEngineBuried(t *testing.T) {
	t.Parallel()
	c, err := xstreamq.New(redistest.Client(t), xstreamq.Config{KeyPrefix: redistest.Prefix(t)})
	if err != nil {
		t.Fatal(err)
	}
	q, err := xstreamq.NewQueue[int](c, "q")
	if err != nil {
		t.Fatal(err)
	}
	dead := make(chan xstreamq.DeadMessage, 4)
	_, err = q.Subscribe("g", func(_ context.Context, m *xstreamq.Message[int]) error {
		if m.Body == 1 || m.Body == 2 && m.Attempt == 2 {
			return xstreamq.DeadLetter(errors.New("refused"))
		}
		return errors.New("failed")
	}, xstreamq.SubscribeOptions{
		MaxRetries: 2, Backoff: xstreamq.Backoff{Initial: time.Millisecond},
		OnDeadLetter: func(_ context.Context, d xstreamq.DeadMessage) { dead <- d },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	want := map[string]int{"0": 3, "1": 1, "2": 2, "x": 1}
	for body := range 3 {
		if _, err := q.Publish(t.Context(), body); err != nil {
			t.Fatal(err)
		}
	}
	text, err := xstreamq.NewQueue(c, "q", xstreamq.WithCodec[string](xstreamq.String{}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := text.Publish(t.Context(), "x"); err != nil { // no number
		t.Fatal(err)
	}
	for range want {
		d := <-dead
		if n := d.Attempts(); n != want[string(d.Body)] {
			t.Errorf("message %s is dead, %s, after %d attempts; want %d", d.Body, d.Reason, n, want[string(d.Body)])
		}
	}
}
