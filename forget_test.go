package xstreamq_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// The states that a group may be in when it is to be forgotten.
const (
	forgetRow     = "HSET @registry q/g {} q/other {} qq/g {}\n"
	forgetGroup   = "XADD @queue 1-0 body a\nXGROUP CREATE @queue g 0\nXGROUP CREATE @queue other 0\n"
	forgetRetry   = "XADD @retry 1-0 body r oid 1-0 rc 1\nXGROUP CREATE @retry g-retry 0\n"
	forgetPending = "XREADGROUP GROUP g gone~100 STREAMS @queue >\n"
	forgetAgain   = forgetRetry + "XREADGROUP GROUP g-retry gone~100 STREAMS @retry >\n"
	forgetBackoff = "ZADD @backoff 1 m 2 n\n"
	forgetDead    = "XADD @dlq 1-0 body d\nXADD @dlq 2-0 body d\n"
	forgetEmptied = "XADD @dlq 1-0 body d\nXDEL @dlq 1-0\n"
	forgetDone    = "ZADD @done 1 1-0\n"
)

// Forget refuses a group that has something to lose, says what and what to do, and leaves all as it was; forced, it loses all of
// that but dead letters. What was only not read yet is no reason.
func TestForgetRefusesWhatWouldBeLost(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, state string
		refused     string // what the error says; empty = it is forgotten
		evenForced  bool
	}{
		{name: "nothing read", state: forgetGroup},
		{name: "keys that hold nothing", state: forgetGroup + forgetEmptied + forgetDone},
		{name: "pending", state: forgetGroup + forgetPending, refused: "it has 1 message pending, 0 to be retried and 0 in backoff;"},
		{name: "pending again", state: forgetGroup + forgetAgain, refused: "it has 1 message pending, 0 to be retried and 0 in backoff;"},
		{name: "to be retried", state: forgetGroup + forgetRetry, refused: "it has 0 messages pending, 1 to be retried and 0 in backoff;"},
		{name: "in backoff", state: forgetGroup + forgetBackoff, refused: "it has 0 messages pending, 0 to be retried and 2 in backoff;"},
		{name: "dead", state: forgetGroup + forgetDead, refused: "it has 2 dead letters; redrive or purge them", evenForced: true},
		{name: "dead and pending", state: forgetGroup + forgetPending + forgetDead, refused: "2 dead letters", evenForced: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newForgetRig(t, xstreamq.Config{})
			r.do(forgetRow + tt.state)
			before := r.state()
			for _, force := range []bool{false, true} {
				err := r.client.Forget(t.Context(), "q", "g", xstreamq.ForgetOptions{Force: force})
				if refused := tt.refused != "" && (!force || tt.evenForced); !refused {
					if err != nil {
						t.Errorf("force %v: %v", force, err)
					}
					if diff := cmp.Diff("group other pending 0", r.state()); diff != "" {
						t.Errorf("force %v: what is left, -want +got:\n%s", force, diff)
					}
					if n := r.int("HLEN @registry"); n != 2 {
						t.Errorf("%d rows of other groups are left, want 2", n)
					}
					return
				}
				if !errors.Is(err, xstreamq.ErrGroupInUse) || !strings.Contains(err.Error(), tt.refused) ||
					!strings.Contains(err.Error(), `queue "q", group "g"`) {
					t.Errorf("force %v: %v, want ErrGroupInUse with %q", force, err, tt.refused)
				}
				if diff := cmp.Diff(before, r.state()); diff != "" {
					t.Errorf("refused, and changed (-before +after):\n%s", diff)
				}
			}
		})
	}
}

// A group of which only a part is left can be forgotten, so also one that an earlier call left half forgotten; one that was never
// there cannot.
func TestForgetWhatIsLeftOfAGroup(t *testing.T) {
	t.Parallel()
	for name, state := range map[string]string{
		"in the registry only": "HSET @registry q/g {}", "on the stream only": "XGROUP CREATE @queue g 0 MKSTREAM",
		"an empty retry stream": "XGROUP CREATE @retry g-retry 0 MKSTREAM", "an empty DLQ": forgetEmptied, "markers": forgetDone,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newForgetRig(t, xstreamq.Config{})
			r.do(state)
			if err := r.client.Forget(t.Context(), "q", "g", xstreamq.ForgetOptions{}); err != nil {
				t.Error(err)
			}
			if left := r.state(); left != "" {
				t.Errorf("left: %s", left)
			}
			err := r.client.Forget(t.Context(), "q", "g", xstreamq.ForgetOptions{})
			if !errors.Is(err, xstreamq.ErrNoGroup) && !errors.Is(err, xstreamq.ErrNoQueue) {
				t.Errorf("once more: %v", err)
			}
		})
	}
	r := newForgetRig(t, xstreamq.Config{})
	want := func(queue, group string, want error) {
		t.Helper()
		for _, force := range []bool{false, true} {
			if err := r.client.Forget(t.Context(), queue, group, xstreamq.ForgetOptions{Force: force}); !errors.Is(err, want) {
				t.Errorf("%s/%s: %v, want %v", queue, group, err, want)
			}
		}
	}
	r.do("XGROUP CREATE @queue other 0 MKSTREAM\nHSET @registry q/other {}")
	want("q", "g", xstreamq.ErrNoGroup)
	want("p", "g", xstreamq.ErrNoQueue)
	want("a b", "g", xstreamq.ErrInvalidName)
	want("q", "", xstreamq.ErrInvalidName)
	if got := r.state(); got != "group other pending 0" {
		t.Error(got)
	}
}

// A group whose worker lives is not forgotten unless forced, and the error names the worker. A worker that goes on makes
// the group anew.
func TestForgetRefusesLiveWorkers(t *testing.T) {
	t.Parallel()
	r := newForgetRig(t, xstreamq.Config{})
	worker := stopConnect(t, "open", redistest.URL(t), xstreamq.Config{KeyPrefix: r.prefix, ConsumerName: "me"})
	q := stopQueue(t, worker, "q")
	got := make(chan string, 10)
	stopSubscribe(t, q, func(_ context.Context, m *xstreamq.Message[string]) error {
		got <- m.Body
		return nil
	}, xstreamq.SubscribeOptions{})
	stopStart(t, worker)
	stopPublish(t, q, "a")
	stopTake(t, "a message", got)
	redistest.WaitFor(t, stopWait, "it ended", func() bool { return stopPending(t, r.redis, r.key("queue"), "g") == 0 })

	err := r.client.Forget(t.Context(), "q", "g", xstreamq.ForgetOptions{})
	if !errors.Is(err, xstreamq.ErrGroupInUse) || !strings.Contains(err.Error(), "it has 1 live worker (me-") {
		t.Errorf("%v, want ErrGroupInUse naming the worker", err)
	}
	if err := r.client.Forget(t.Context(), "q", "g", xstreamq.ForgetOptions{Force: true}); err != nil {
		t.Fatal(err)
	}
	stopPublish(t, q, "b")
	for body := ""; body != "b"; {
		body = stopTake(t, "the next message", got) // "a" may come again
	}
	if err := worker.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	redistest.WaitFor(t, stopWait, "its worker gone", func() bool {
		return r.client.Forget(t.Context(), "q", "g", xstreamq.ForgetOptions{}) == nil
	})
	if left := r.state(); left != "" {
		t.Errorf("left: %s", left)
	}
}

// What a dead group keeps is trimmed once it is forgotten.
func TestForgetLetsCompactionGoOn(t *testing.T) {
	t.Parallel()
	for _, onStream := range []bool{true, false} {
		r := newForgetRig(t, xstreamq.Config{})
		r.queueOf(1000)
		r.do("XGROUP CREATE @queue alive $\nHSET @registry q/alive {} q/g {}")
		if onStream {
			r.do("XGROUP CREATE @queue g 0")
		}
		if got := r.compact(); got.Trimmed != 0 {
			t.Errorf("on the stream %v: %d entries were trimmed that the group needs", onStream, got.Trimmed)
		}
		if err := r.client.Forget(t.Context(), "q", "g", xstreamq.ForgetOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := r.compact(); got.Trimmed < 1000-node || got.Missing != "" {
			t.Errorf("on the stream %v: %+v, want 1000 entries trimmed", onStream, got)
		}
	}
}

// Two calls at once both come to an end, and the group is gone.
func TestForgetTwiceAtOnce(t *testing.T) {
	t.Parallel()
	r := newForgetRig(t, xstreamq.Config{})
	for range 20 {
		r.do(forgetRow + "DEL @queue\n" + forgetGroup + forgetPending + forgetBackoff + forgetDone)
		errs := make(chan error, 2)
		for range 2 {
			go func() { errs <- r.client.Forget(t.Context(), "q", "g", xstreamq.ForgetOptions{Force: true}) }()
		}
		for range 2 {
			if err := <-errs; err != nil && !errors.Is(err, xstreamq.ErrNoGroup) {
				t.Error(err)
			}
		}
		if left := r.state(); left != "group other pending 0" {
			t.Fatalf("left: %s", left)
		}
	}
}

// A key of the wrong type: the error names it, and nothing changes.
func TestForgetWrongTypes(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"queue", "retry", "backoff", "dlq", "done", "registry"} {
		r := newForgetRig(t, xstreamq.Config{})
		r.do(forgetRow + forgetGroup)
		r.do("DEL @" + key + "\nLPUSH @" + key + " x")
		err := r.client.Forget(t.Context(), "q", "g", xstreamq.ForgetOptions{Force: true})
		if err == nil || !strings.Contains(err.Error(), r.key(key)) || !strings.Contains(err.Error(), "TYPE") {
			t.Errorf("%s: %v, want an error that names the key and its type", key, err)
		}
		if key != "queue" && r.int("XLEN @queue") != 1 || key != "registry" && r.int("HLEN @registry") != 3 || r.int("LLEN @"+key) != 1 {
			t.Errorf("%s: it is not as it was", key)
		}
	}
}
