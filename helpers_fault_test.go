package xstreamq_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// The tests of faults take their time: a server that restarts while the machine is busy is no defect.
const (
	faultPatience = 60 * time.Second
	faultQueue    = "q"
	faultGroup    = "g"
)

// faultRig is a queue with one group under a prefix of its own, a way to look at it, and what its workers logged and ran.
type faultRig struct {
	t      *testing.T
	url    string // for workers; may lead through a proxy
	prefix string
	keys   keys.Set
	redis  rueidis.Client // straight to the server
	log    *faultLog
	runs   *faultRuns
	config func(*xstreamq.Config) // changes what clients are opened with
	opts   *rueidis.ClientOption  // what clients are opened with in place of url, or nil
}

// newFaultRig makes a rig on a server of the test's own.
func newFaultRig(t *testing.T, server *redistest.Server) *faultRig {
	t.Helper()
	prefix := "fault:"
	return &faultRig{
		t: t, url: server.URL(), prefix: prefix, keys: keys.ForGroup(prefix, faultQueue, faultGroup),
		redis: redistest.Dial(t, server.URL()), log: newFaultLog(), runs: newFaultRuns(),
	}
}

// client opens a client of the rig. It is closed at the end of the test.
func (r *faultRig) client() (*xstreamq.Client, *xstreamq.Queue[string]) {
	r.t.Helper()
	var c *xstreamq.Client
	var err error
	if r.opts != nil {
		c, err = xstreamq.OpenWith(*r.opts, r.clientConfig())
	} else {
		c, err = xstreamq.Open(r.url, r.clientConfig())
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return r.queueOf(c)
}

func (r *faultRig) clientConfig() xstreamq.Config {
	cfg := xstreamq.Config{
		KeyPrefix: r.prefix, Logger: slog.New(r.log), CompactEvery: 200 * time.Millisecond, DrainTimeout: 10 * time.Second,
	}
	if r.config != nil {
		r.config(&cfg)
	}
	return cfg
}

// queueOf returns the queue of a client, which it closes at the end of the test.
func (r *faultRig) queueOf(c *xstreamq.Client) (*xstreamq.Client, *xstreamq.Queue[string]) {
	r.t.Helper()
	r.t.Cleanup(func() { _ = c.Close() })
	q, err := xstreamq.NewQueue[string](c, faultQueue)
	if err != nil {
		r.t.Fatal(err)
	}
	return c, q
}

// worker starts a worker whose runs are recorded.
func (r *faultRig) worker(opts xstreamq.SubscribeOptions, handle xstreamq.Handler[string]) (*xstreamq.Client, *xstreamq.Queue[string]) {
	r.t.Helper()
	c, q := r.client()
	if _, err := q.Subscribe(faultGroup, r.runs.record(handle), opts); err != nil {
		r.t.Fatal(err)
	}
	if err := c.Start(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	return c, q
}

// publish stores bodies and returns their ids.
func (r *faultRig) publish(q *xstreamq.Queue[string], bodies ...string) []string {
	r.t.Helper()
	ids := make([]string, len(bodies))
	for i, body := range bodies {
		var err error
		if ids[i], err = q.Publish(r.t.Context(), body); err != nil {
			r.t.Fatal(err)
		}
	}
	return ids
}

// do sends one command, given as words, to the server, and fails the test on an error.
func (r *faultRig) do(words ...string) rueidis.RedisMessage {
	r.t.Helper()
	reply, err := r.try(words...)
	if err != nil {
		r.t.Fatalf("%s: %v", strings.Join(words, " "), err)
	}
	return reply
}

// try is do with the error returned. A connection that broke is made anew: servers are killed on purpose.
func (r *faultRig) try(words ...string) (rueidis.RedisMessage, error) {
	ctx, cancel := context.WithTimeout(context.Background(), faultPatience)
	defer cancel()
	for {
		reply, err := r.redis.Do(ctx, r.redis.B().Arbitrary(words...).Build()).ToMessage()
		if rueidis.IsRedisNil(err) {
			err = nil
		}
		if _, answered := rueidis.IsRedisErr(err); err == nil || answered || ctx.Err() != nil {
			return reply, err
		}
		time.Sleep(faultPause)
	}
}

// calls returns how often the server has executed a command, and how often it refused it.
func (r *faultRig) calls(command string) (n int) {
	r.t.Helper()
	reply := r.do("INFO", "commandstats")
	info, err := reply.ToString()
	if err != nil {
		r.t.Fatal(err)
	}
	_, rest, ok := strings.Cut(info, "cmdstat_"+command+":")
	if !ok {
		return 0
	}
	line, _, _ := strings.Cut(rest, "\r\n")
	for field := range strings.SplitSeq(line, ",") {
		name, value, _ := strings.Cut(field, "=")
		if name == "calls" || name == "rejected_calls" {
			v, _ := strconv.Atoi(value)
			n += v
		}
	}
	return n
}

// healthy waits until a client says that all is well again.
func (r *faultRig) healthy(c *xstreamq.Client) {
	r.t.Helper()
	var err error
	defer func() {
		if err != nil {
			r.t.Logf("the last word of Healthy: %v", err)
		}
	}()
	redistest.WaitFor(r.t, faultPatience, "a healthy client", func() bool {
		err = c.Healthy(r.t.Context())
		return err == nil
	})
}

// drained waits until nothing of the group is anywhere but in the dead-letter queue, and returns the dead letters.
func (r *faultRig) drained() map[string]faultDead {
	r.t.Helper()
	var p *faultPlaces
	defer func() {
		if r.t.Failed() && p != nil {
			r.t.Logf("still there: %s", p.some())
		}
	}()
	redistest.WaitFor(r.t, faultPatience, "a group with nothing left to do", func() bool {
		p = r.places()
		return len(p.at) == len(p.dead)
	})
	return p.dead
}

// handled waits until each of the messages succeeded at least once.
func (r *faultRig) handled(bodies []string) {
	r.t.Helper()
	missing := bodies
	defer func() {
		if r.t.Failed() && len(missing) > 0 {
			r.t.Logf("%d of %d not handled, as %q; in Redis: %s\nlog:\n%s",
				len(missing), len(bodies), missing[0], r.places().some(), r.log)
		}
	}()
	redistest.WaitFor(r.t, faultPatience, "every message handled", func() bool {
		missing = slices.DeleteFunc(slices.Clone(missing), func(body string) bool { return r.runs.get(body).succeeded > 0 })
		return len(missing) == 0
	})
}

// once fails the test for each message that was handled twice or lost its lease: no worker died.
func (r *faultRig) once() {
	r.t.Helper()
	for body, run := range r.runs.all() {
		if run.succeeded > 1 || run.most > 1 || run.lost > 0 || run.cause != nil {
			r.t.Errorf("%s ran twice or lost its lease, and no worker died: %+v", body, run)
		}
	}
}

// never fails the test if something becomes true within d.
func (r *faultRig) never(d time.Duration, what string, cond func() bool) {
	r.t.Helper()
	end := time.Now().Add(d)
	redistest.WaitFor(r.t, d+faultPatience, "the end of a wait", func() bool {
		if cond() {
			r.t.Fatalf("%s\nlog:\n%s", what, r.log)
		}
		return time.Now().After(end)
	})
}

// wait lets time pass while something is broken: nothing signals its end.
func (r *faultRig) wait(d time.Duration) {
	r.t.Helper()
	end := time.Now().Add(d)
	redistest.WaitFor(r.t, d+faultPatience, "the end of an outage", func() bool { return time.Now().After(end) })
}

// unblockAll wakes every blocked read with an error, as a stranger may.
func (r *faultRig) unblockAll() (woken int) {
	r.t.Helper()
	reply := r.do("CLIENT", "LIST")
	list, err := reply.ToString()
	if err != nil {
		r.t.Fatal(err)
	}
	for line := range strings.SplitSeq(strings.TrimPrefix(list, "txt:"), "\n") {
		id, _, _ := strings.Cut(strings.TrimPrefix(line, "id="), " ")
		if strings.Contains(line, " cmd=xreadgroup ") {
			reply := r.do("CLIENT", "UNBLOCK", id, "ERROR")
			n, _ := reply.AsInt64()
			woken += int(n)
		}
	}
	return woken
}

// faultLoad publishes until it is told to end.
type faultLoad struct {
	quit chan struct{}
	wg   sync.WaitGroup

	mu     sync.Mutex
	stored []string          // bodies whose Publish returned nil
	ids    map[string]string // what it returned
}

// Pace of each publisher of a load: between two messages, and after an error.
const (
	faultPace  = 2 * time.Millisecond
	faultPause = 50 * time.Millisecond
)

// load publishes from several goroutines. Every 20th message is one that fails once, "flaky". Two loads of one test have names.
func (r *faultRig) load(q *xstreamq.Queue[string], publishers int, name ...string) *faultLoad {
	l := &faultLoad{quit: make(chan struct{}), ids: map[string]string{}}
	of := strings.Join(name, "")
	for p := range publishers {
		l.wg.Go(func() {
			for n := 1; ; n++ {
				body := fmt.Sprintf("load-%s%d-%d", of, p, n)
				if n%20 == 0 {
					body = fmt.Sprintf("flaky-%s%d-%d", of, p, n)
				}
				wait := faultPace
				if id, err := q.Publish(context.Background(), body); err == nil {
					l.mu.Lock()
					l.stored = append(l.stored, body)
					l.ids[body] = id
					l.mu.Unlock()
				} else {
					wait = faultPause
				}
				select {
				case <-l.quit:
					return
				case <-time.After(wait):
				}
			}
		})
	}
	r.t.Cleanup(func() { l.end() })
	return l
}

// end stops the load and returns the bodies that were stored for sure.
func (l *faultLoad) end() []string {
	l.mu.Lock()
	select {
	case <-l.quit:
	default:
		close(l.quit)
	}
	l.mu.Unlock()
	l.wg.Wait()
	return l.stored
}

// count is how many were stored for sure so far.
func (l *faultLoad) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.stored)
}

// faultFlaky handles a load.
func faultFlaky(_ context.Context, m *xstreamq.Message[string]) error {
	if strings.HasPrefix(m.Body, "flaky") && m.Retries == 0 {
		return errors.New("flaky")
	}
	return nil
}
