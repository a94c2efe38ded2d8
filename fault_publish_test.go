package xstreamq_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// storedBodies returns the ids of what is in the queue or waits to be due, by body.
func (r *faultRig) storedBodies() map[string][]string {
	r.t.Helper()
	ids := map[string][]string{}
	for _, e := range faultEntries(r.do("XRANGE", r.keys.Queue, "-", "+")) {
		body := strings.Trim(e.fields["body"], `"`)
		ids[body] = append(ids[body], e.id)
	}
	reply := r.do("ZRANGE", r.keys.Delayed, "0", "-1")
	members, _ := reply.AsStrSlice()
	for _, m := range members {
		id, _, _ := strings.Cut(m, "\x00")
		_, body, _ := strings.Cut(m, `"`)
		body, _, _ = strings.Cut(body, `"`)
		ids[body] = append(ids[body], id)
	}
	return ids
}

// P1: an error of Publish that is not ErrPublishUncertain says that the message surely was not stored, and one that is, that it may have
// been. Nothing is sent twice.
func TestPublishErrorSaysWhetherStored(t *testing.T) {
	t.Parallel()
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	for _, tt := range []struct {
		name      string
		spoil     func(r *faultRig, s *redistest.Server, p *redistest.Proxy)
		body      string
		ctx       context.Context
		uncertain bool
		stored    int
		says      string
		is        error
	}{
		{name: "answer lost", uncertain: true, stored: 1, spoil: func(_ *faultRig, _ *redistest.Server, p *redistest.Proxy) {
			p.CutAfterRequest([]byte("answer lost"))
		}},
		{name: "request lost", uncertain: true, spoil: func(_ *faultRig, _ *redistest.Server, p *redistest.Proxy) {
			p.CutBeforeRequest([]byte("request lost"))
		}},
		{name: "full", says: "OOM", spoil: func(r *faultRig, _ *redistest.Server, _ *redistest.Proxy) {
			r.do("CONFIG", "SET", "maxmemory", "1")
		}},
		{name: "replica", says: "READONLY", spoil: func(r *faultRig, _ *redistest.Server, _ *redistest.Proxy) {
			r.do("REPLICAOF", "127.0.0.1", "1")
		}},
		{name: "too few replicas", says: "NOREPLICAS", spoil: func(r *faultRig, _ *redistest.Server, _ *redistest.Proxy) {
			r.do("CONFIG", "SET", "min-replicas-to-write", "1")
		}},
		{name: "forbidden", says: "NOPERM", spoil: func(r *faultRig, _ *redistest.Server, _ *redistest.Proxy) {
			r.do("ACL", "SETUSER", "default", "resetkeys", "~nothing")
		}},
		{name: "cancelled", is: context.Canceled, ctx: cancelled},
		{name: "too large", is: xstreamq.ErrTooLarge, body: strings.Repeat("x", 2<<20)},
	} {
		for how, opts := range map[string][]xstreamq.PublishOption{"at once": nil, "later": {xstreamq.WithDelay(time.Hour)}} {
			t.Run(tt.name+", "+how, func(t *testing.T) {
				t.Parallel()
				server := redistest.Start(t, redistest.Options{})
				proxy := redistest.NewProxy(t, server.URL())
				rig := newFaultRig(t, server)
				rig.url = proxy.URL()
				_, q := rig.client()
				if _, err := q.Publish(t.Context(), "warm-up", opts...); err != nil {
					t.Fatal(err)
				}
				if tt.spoil != nil {
					tt.spoil(rig, server, proxy)
				}
				ctx, body := t.Context(), tt.name
				if tt.ctx != nil {
					ctx = tt.ctx
				}
				if tt.body != "" {
					body = tt.body
				}
				id, err := q.Publish(ctx, body, opts...)
				if err == nil || id != "" {
					t.Fatalf("Publish returned %q, %v", id, err)
				}
				if errors.Is(err, xstreamq.ErrPublishUncertain) != tt.uncertain || !strings.Contains(err.Error(), tt.says) {
					t.Errorf("Publish says %q (uncertain: %v), want %q (uncertain: %v)",
						err, errors.Is(err, xstreamq.ErrPublishUncertain), tt.says, tt.uncertain)
				}
				if tt.is != nil && !errors.Is(err, tt.is) {
					t.Errorf("Publish says %q, want %q", err, tt.is)
				}
				rig.do("ACL", "SETUSER", "default", "~*")
				if n := len(rig.storedBodies()[body]); n != tt.stored {
					t.Errorf("stored %d times, want %d", n, tt.stored)
				}
			})
		}
	}
}

// P1: a connection that is refused stores nothing, and Publish says so; it works again as soon as the server is there.
func TestPublishToServerThatIsDown(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	rig := newFaultRig(t, server)
	_, q := rig.client()
	rig.publish(q, "before")
	server.Kill()
	var err error
	redistest.WaitFor(t, faultPatience, "a refused connection", func() bool {
		_, err = q.Publish(t.Context(), "refused")
		return err != nil && strings.Contains(err.Error(), "connection refused")
	})
	for range 5 {
		for _, opts := range [][]xstreamq.PublishOption{nil, {xstreamq.WithDelay(time.Hour)}} {
			if _, err := q.Publish(t.Context(), "refused", opts...); err == nil || errors.Is(err, xstreamq.ErrPublishUncertain) {
				t.Errorf("Publish says %v", err)
			}
		}
	}
	for i, res := range q.PublishBatch(t.Context(), []xstreamq.Outgoing[string]{{Body: "refused"}, {Body: "refused"}}) {
		if res.Err == nil || errors.Is(res.Err, xstreamq.ErrPublishUncertain) {
			t.Errorf("PublishBatch says %v of message %d", res.Err, i)
		}
	}
	if err := server.Restart(); err != nil {
		return
	}
	redistest.WaitFor(t, faultPatience, "a publish", func() bool {
		_, err := q.Publish(t.Context(), "after")
		return err == nil
	})
	if n := len(rig.storedBodies()["refused"]); n != 0 {
		t.Errorf("%d messages were stored whose Publish had been refused", n)
	}
}

// P1: Publish never hangs: it returns at its deadline, or without one within 6s, also when the connection has to be made anew.
func TestPublishIntoTheVoid(t *testing.T) {
	t.Parallel()
	for _, cold := range []bool{false, true} {
		for _, deadline := range []time.Duration{300 * time.Millisecond, 0} {
			t.Run(fmt.Sprintf("new connection: %v, deadline: %s", cold, deadline), func(t *testing.T) {
				t.Parallel()
				rig := sharedFaultRig(t)
				proxy := redistest.NewProxy(t, rig.url)
				rig.url = proxy.URL()
				_, q := rig.client()
				rig.publish(q, "before")
				proxy.BlackHole()
				t.Cleanup(proxy.Pass)
				if cold {
					proxy.Cut()
					redistest.WaitFor(t, faultPatience, "a connection under way", func() bool {
						ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
						defer cancel()
						_, err := q.Publish(ctx, "lost")
						return errors.Is(err, context.DeadlineExceeded)
					})
				}
				var wg sync.WaitGroup
				defer wg.Wait()
				for what, publish := range map[string]func(context.Context) error{
					"Publish": func(ctx context.Context) error {
						_, err := q.Publish(ctx, "lost")
						return err
					},
					"Publish with a delay": func(ctx context.Context) error {
						_, err := q.Publish(ctx, "lost", xstreamq.WithDelay(time.Hour))
						return err
					},
					"PublishBatch": func(ctx context.Context) error {
						return q.PublishBatch(ctx, []xstreamq.Outgoing[string]{{Body: "lost"}, {Body: "lost"}})[1].Err
					},
				} {
					wg.Go(func() {
						ctx, limit := context.Background(), 6*time.Second
						if deadline > 0 {
							var cancel context.CancelFunc
							ctx, cancel = context.WithTimeout(ctx, deadline)
							defer cancel()
							limit = deadline
						}
						start := time.Now()
						err := publish(ctx)
						took := time.Since(start)
						if err == nil || took > limit+2*time.Second { // the machine may be busy
							t.Errorf("%s returned %v after %s, limit %s", what, err, took, limit)
						}
						if deadline > 0 && took < deadline/2 {
							t.Errorf("%s returned %v after %s, before its deadline", what, err, took)
						}
					})
				}
			})
		}
	}
}

// P1: PublishBatch tells for each message what became of it.
func TestPublishBatchWithMixedFailures(t *testing.T) {
	t.Parallel()
	rig := sharedFaultRig(t)
	_, q := rig.client()
	rig.do("SET", rig.keys.Delayed, "not ours")
	later := []xstreamq.PublishOption{xstreamq.WithDelay(time.Hour)}
	results := q.PublishBatch(t.Context(), []xstreamq.Outgoing[string]{
		{Body: "first"},
		{Body: strings.Repeat("x", 2<<20)},
		{Body: "later", Options: later},
		{Body: "second"},
		{Body: "twice", Options: []xstreamq.PublishOption{xstreamq.WithHeader("a", "1"), xstreamq.WithHeader("a", "2")}},
		{Body: "third"},
	})
	for i, want := range []string{"", "too large", "XQTYPE", "", "set twice", ""} {
		err := results[i].Err
		switch {
		case want == "" && (err != nil || results[i].ID == ""):
			t.Errorf("message %d: %q, %v", i, results[i].ID, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || errors.Is(err, xstreamq.ErrPublishUncertain)):
			t.Errorf("message %d: %v, want %q", i, err, want)
		}
	}
	entries := faultEntries(rig.do("XRANGE", rig.keys.Queue, "-", "+"))
	if len(entries) != 3 || entries[0].id != results[0].ID || entries[1].id != results[3].ID || entries[2].id != results[5].ID {
		t.Errorf("stored %v, results %v", entries, results)
	}
}

// P1: a connection that is cut in the middle of a batch leaves each message with the truth: stored under that id, maybe stored, or not
// stored. Nothing is sent twice.
func TestPublishBatchCutInTheMiddle(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]func(*redistest.Proxy, []byte) <-chan struct{}{
		"answer lost":  (*redistest.Proxy).CutAfterRequest,
		"request lost": (*redistest.Proxy).CutBeforeRequest,
	} {
		for how, opts := range map[string][]xstreamq.PublishOption{"at once": nil, "later": {xstreamq.WithDelay(time.Hour)}} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				rig := sharedFaultRig(t)
				proxy := redistest.NewProxy(t, rig.url)
				rig.url = proxy.URL()
				_, q := rig.client()
				rig.publish(q, "warm-up")
				batch := make([]xstreamq.Outgoing[string], 2000)
				for i := range batch {
					batch[i] = xstreamq.Outgoing[string]{Body: fmt.Sprintf("m-%04d-%s", i, strings.Repeat(".", 500)), Options: opts}
				}
				fired := cut(proxy, []byte("m-0700-"))
				results := q.PublishBatch(t.Context(), batch)
				<-fired
				unsure, stored := 0, rig.storedBodies()
				for i, res := range results {
					ids := stored[batch[i].Body]
					n := len(ids)
					switch {
					case res.Err == nil && (n != 1 || ids[0] != res.ID):
						t.Errorf("message %d: stored as %q, and the result is %q", i, ids, res.ID)
					case errors.Is(res.Err, xstreamq.ErrPublishUncertain):
						unsure++
						if n > 1 {
							t.Errorf("message %d: stored %d times", i, n)
						}
					case res.Err != nil && n > 0:
						t.Errorf("message %d: stored %d times in spite of %v", i, n, res.Err)
					}
				}
				if unsure == 0 || !errors.Is(results[700].Err, xstreamq.ErrPublishUncertain) {
					t.Errorf("%d messages are uncertain; of the one that was cut it says %v", unsure, results[700].Err)
				}
			})
		}
	}
}
