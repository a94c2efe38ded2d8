package xstreamq_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// forgetAll is a group with one of everything that force gives up.
const forgetAll = forgetRow + forgetGroup + forgetPending + forgetRetry + forgetBackoff + forgetEmptied + forgetDone

var forced = xstreamq.ForgetOptions{Force: true}

// A connection that breaks after any of Forget's commands, executed or not, leaves nothing that a second call cannot finish.
func TestForgetAfterACut(t *testing.T) {
	t.Parallel()
	for _, cut := range []struct {
		name, request string
		executed      bool
	}{
		{"before the row goes", "HDEL", false},
		{"after the row went", "HDEL", true},
		// The second script is told by its lock.
		{"before the group goes", "lock:reclaim-retry:g", false},
		{"after the group went", "lock:reclaim-retry:g", true},
	} {
		t.Run(cut.name, func(t *testing.T) {
			t.Parallel()
			r := newForgetRig(t, xstreamq.Config{})
			r.do(forgetAll)
			proxy := redistest.NewProxy(t, redistest.URL(t))
			client := stopConnect(t, "open", proxy.URL(), xstreamq.Config{KeyPrefix: r.prefix})
			arm := proxy.CutBeforeRequest
			if cut.executed {
				arm = proxy.CutAfterRequest
			}
			fired := arm([]byte(cut.request))
			if err := client.Forget(t.Context(), "q", "g", forced); err == nil {
				t.Error("no error")
			}
			stopTake(t, "the cut", fired)
			if n := r.int("HLEN @registry"); cut.request != "HDEL" && n != 2 {
				t.Errorf("the group was to go after its row; %d rows", n)
			}
			err := client.Forget(t.Context(), "q", "g", forced)
			if err != nil && !errors.Is(err, xstreamq.ErrNoGroup) { // an executed one was the last step
				t.Error(err)
			}
			if diff := cmp.Diff("group other pending 0", r.state()); diff != "" {
				t.Errorf("what is left, -want +got:\n%s", diff)
			}
		})
	}
}

// What comes in between the look and the end: a message that would be lost makes Forget refuse, and the row is back as it was; so it is
// when Redis refuses. A row that a worker has written meanwhile stays.
func TestForgetPutsTheRowBack(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, meanwhile string
		force           bool
		want            string
		state           string
	}{
		{"a failed message", "ZADD @backoff 1 m", false, "in use", "row {old}, group g pending 0, group other pending 0, backoff"},
		{"a dead letter, by force", "XADD @dlq 1-0 body d", true, "dead letter", "row {old}, group g pending 0, group other pending 0, dlq"},
		{"a worker, and what it holds", "XREADGROUP GROUP g c STREAMS @queue >\nHSET @registry q/g {new}", false, "1 message pending",
			"row {new}, group g pending 1, group other pending 0"},
		{"a key of the wrong type", "SET @retry x", true, "XQTYPE", "row {old}, group g pending 0, group other pending 0, retry"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			prefix := redistest.Prefix(t)
			r := &forgetRig{t: t, prefix: prefix, redis: redistest.Client(t)}
			r.client = stopNew(t, &hooked{Client: redistest.Client(t), after: func(command string) {
				if command == "HDEL" {
					r.do(tt.meanwhile)
				}
			}}, xstreamq.Config{KeyPrefix: prefix})
			r.do("HSET @registry q/g {old} qq/g {}\n" + forgetGroup)
			err := r.client.Forget(t.Context(), "q", "g", xstreamq.ForgetOptions{Force: tt.force})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
			if diff := cmp.Diff(tt.state, r.state()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// A row that cannot be put back is told of.
func TestForgetSaysThatTheRowIsGone(t *testing.T) {
	t.Parallel()
	prefix := redistest.Prefix(t)
	r := &forgetRig{t: t, prefix: prefix, redis: redistest.Client(t)}
	r.client = stopNew(t, &hooked{Client: redistest.Client(t), after: func(command string) {
		if command == "HDEL" {
			r.do("XADD @dlq 1-0 body d\nDEL @registry\nSET @registry x")
		}
	}}, xstreamq.Config{KeyPrefix: prefix})
	r.do(forgetRow + forgetGroup)
	err := r.client.Forget(t.Context(), "q", "g", xstreamq.ForgetOptions{})
	if !errors.Is(err, xstreamq.ErrGroupInUse) || !strings.Contains(err.Error(), "cannot be put back") {
		t.Errorf("%v, want ErrGroupInUse, and that the row is gone", err)
	}
}

// What operations on a group need of an ACL, besides the keys of the queue and the registry.
const (
	aclForget  = "+hello +ping +eval +evalsha +type +exists +hget +hdel +hsetnx +xinfo|groups +xinfo|consumers +xlen +xack +xpending +xgroup|destroy +zcard +unlink"
	aclCompact = "+hello +ping +eval +evalsha +type +exists +time +hkeys +xinfo|groups +xpending +xrange +xtrim"
	aclCancel  = "+hello +ping +eval +evalsha +type +zcount +zrange +zrem +zscan"
)

// Forget, Compact and Cancel need no more than the documented commands. Without one of them the error says so, and the group, its
// row and its messages are as they were.
func TestMinimalACLOfForgetCompactCancel(t *testing.T) {
	t.Parallel()
	r, server := forgetAlone(t, xstreamq.Config{KeyPrefix: "app:"})
	// Needed in some states only; and compaction looks at an entry after it has trimmed some.
	const optional = "+hello +ping +exists +xpending +hsetnx +xrange +evalsha +eval +zscan"
	ops := []struct {
		name, commands, keys string
		call                 func(c *xstreamq.Client) error
	}{
		{"forget", aclForget, "~app:{q}* ~app:xstreamq:registry", func(c *xstreamq.Client) error {
			return c.Forget(t.Context(), "q", "g", xstreamq.ForgetOptions{})
		}},
		{"compact", aclCompact, "~app:{q} ~app:xstreamq:registry", func(c *xstreamq.Client) error {
			_, err := c.Compact(t.Context(), "q")
			return err
		}},
		{"cancel", aclCancel, "~app:{q}.delayed", func(c *xstreamq.Client) error {
			_, err := c.Cancel(t.Context(), "q", "d5-aa")
			return err
		}},
	}
	prepare := func() {
		r.do("FLUSHALL\nXGROUP CREATE @queue g 0 MKSTREAM\nXGROUP CREATE @queue done 0\n" + forgetEmptied + forgetDone + "HSET @registry q/g {}")
		r.queueOf(300)
		r.do("XGROUP SETID @queue g 300-0\nXGROUP SETID @queue done 300-0")
		r.script(`redis.call('ZADD', KEYS[1], 5, 'd5-aa\0' .. '4:body1:a', 6, 'd5-bb\0')`, "delayed")
	}
	state := func() string {
		queue, delayed := r.ask("XLEN @queue"), r.ask("ZCARD @delayed")
		return r.state() + ", " + queue.String() + ", " + delayed.String()
	}
	number := 0
	as := func(keys, commands string) *xstreamq.Client {
		number++
		name := "user" + strings.Repeat("x", number)
		r.do("ACL SETUSER " + name + " on >secret resetkeys " + keys + " -@all " + commands)
		return stopConnect(t, "open", "redis://"+name+":secret@"+server.Addr(), xstreamq.Config{KeyPrefix: "app:", Retain: time.Millisecond})
	}
	for _, op := range ops {
		prepare()
		before := state()
		if err := op.call(as(op.keys, op.commands)); err != nil {
			t.Errorf("%s with all that it needs: %v", op.name, err)
		}
		if state() == before {
			t.Errorf("%s did nothing: %s", op.name, before)
		}
		for command := range strings.FieldsSeq(op.commands) {
			if slices.Contains(strings.Fields(optional), command) {
				continue
			}
			prepare()
			r.do("CONFIG RESETSTAT")
			denied := strings.Replace(op.commands, command, "", 1)
			err := op.call(as(op.keys, strings.ReplaceAll(denied, "  ", " ")))
			if err == nil || !strings.Contains(err.Error(), "NOPERM") && !strings.Contains(err.Error(), "can't run this command") &&
				!strings.Contains(err.Error(), "ACL failure in script") {
				t.Errorf("%s without %s: %v", op.name, command, err)
			}
			if n := r.calls("hdel"); n > 0 {
				t.Errorf("%s without %s took the row away, and had to put it back", op.name, command)
			}
			if diff := cmp.Diff(before, state()); diff != "" {
				t.Errorf("%s without %s changed something (-before +after):\n%s", op.name, command, diff)
			}
		}
	}
}

// A server that is gone ends each call within its bound, also without a deadline; a call with one ends by that.
func TestForgetCompactCancelWithoutAServer(t *testing.T) {
	t.Parallel()
	r, server := forgetAlone(t, xstreamq.Config{})
	r.do(forgetAll)
	calls := map[string]func(context.Context) error{
		"forget": func(ctx context.Context) error { return r.client.Forget(ctx, "q", "g", forced) },
		"compact": func(ctx context.Context) error {
			_, err := r.client.Compact(ctx, "q")
			return err
		},
		"cancel": func(ctx context.Context) error {
			_, err := r.client.Cancel(ctx, "q", "d5-aa")
			return err
		},
	}
	all := func(ctx context.Context, within time.Duration) {
		type answer struct {
			name string
			err  error
			took time.Duration
		}
		answers := make(chan answer, len(calls))
		for name, call := range calls {
			go func() {
				start := time.Now()
				err := call(ctx)
				answers <- answer{name, err, time.Since(start)}
			}()
		}
		for range calls {
			if a := <-answers; a.err == nil || a.took > within {
				t.Errorf("%s took %v and returned %v", a.name, a.took, a.err)
			} else if !strings.Contains(a.err.Error(), `"q"`) {
				t.Errorf("%s: the error does not name the queue: %v", a.name, a.err)
			}
		}
	}
	server.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	all(ctx, 5*time.Second)
	server.Resume()
	server.Kill()
	all(context.Background(), 15*time.Second)
}

// On a cluster the registry lies on another node than the queue: all of it works there too.
func TestForgetCompactCancelOnACluster(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 2)
	_, registry, _ := c.slot("xstreamq:registry")
	queue := "q"
	if _, owner, _ := c.slot("{q}"); owner == registry {
		queue = "s"
	}
	_, owner, _ := c.slot("{" + queue + "}")
	if owner == registry {
		t.Fatal("the registry is on the node of either queue")
	}
	client := stopNew(t, c.client(), xstreamq.Config{})
	q := stopQueue(t, client, queue)
	id, err := q.Publish(t.Context(), "later", xstreamq.WithDelay(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		stopPublish(t, q, strings.Repeat("x", 5000)) // a node of the stream each
	}
	registry.do("HSET", "xstreamq:registry", queue+"/g", "{}", queue+"/alive", "{}")
	owner.do("XGROUP", "CREATE", "{"+queue+"}", "alive", "$")
	if got, err := client.Compact(t.Context(), queue); err != nil || got != (xstreamq.CompactResult{Missing: "g"}) {
		t.Errorf("Compact: %+v, %v", got, err)
	}
	if err := client.Forget(t.Context(), queue, "g", xstreamq.ForgetOptions{}); err != nil {
		t.Error(err)
	}
	if got, err := client.Compact(t.Context(), queue); err != nil || got.Trimmed < 4 {
		t.Errorf("Compact: %+v, %v", got, err)
	}
	for _, want := range []bool{true, false} {
		if got, err := client.Cancel(t.Context(), queue, id); err != nil || got != want {
			t.Errorf("Cancel: %v, %v", got, err)
		}
	}
}
