package xstreamq_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// inspectBound is the documented bound of one call, and what a busy machine may add.
const inspectBound = 5*time.Second + 3*time.Second

// allInspections are all read-only operations.
func allInspections() []inspection {
	all := append(inspections(), queueInspections()...)
	return append(all, inspection{"Registered", func(ctx context.Context, c *xstreamq.Client, _, _ string) (any, error) { return c.Registered(ctx) }})
}

// Without a deadline every operation ends within the documented bound, whatever is wrong with the server, and says what is.
func TestInspectionWithoutRedis(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		fault func(*redistest.Server, *redistest.Proxy)
		cause func(error) bool
	}{
		{"a dead server", func(s *redistest.Server, _ *redistest.Proxy) { s.Kill() }, func(err error) bool { return !errors.Is(err, context.Canceled) }},
		{"a black hole", func(_ *redistest.Server, p *redistest.Proxy) { p.BlackHole() }, func(err error) bool { return errors.Is(err, context.DeadlineExceeded) }},
		{"a frozen server", func(s *redistest.Server, _ *redistest.Proxy) { s.Pause() }, func(err error) bool { return errors.Is(err, context.DeadlineExceeded) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t, redistest.Options{})
			proxy := redistest.NewProxy(t, server.URL())
			r := newInspectRigAt(t, server.URL(), "p:")
			r.run(inspectEverywhere)
			client, err := xstreamq.Open(proxy.URL(), xstreamq.Config{KeyPrefix: "p:"})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = client.Close() })
			c.fault(server, proxy)
			var asked sync.WaitGroup
			for _, i := range allInspections() {
				asked.Go(func() {
					begun := time.Now()
					_, err := i.ask(context.Background(), client, "q", "g")
					if took := time.Since(begun); took > inspectBound || err == nil || !c.cause(err) {
						t.Errorf("%s took %v: %v", i.name, took, err)
					}
				})
			}
			asked.Wait()
			server.Resume()
		})
	}
}

// A context that has ended, or ends meanwhile, ends every operation at once.
func TestInspectionEndsByItsContext(t *testing.T) {
	t.Parallel()
	r := newInspectRig(t)
	r.run(inspectEverywhere)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, i := range allInspections() {
		if _, err := i.ask(cancelled, r.client, "q", "g"); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", i.name, err)
		}
	}
	proxy := redistest.NewProxy(t, redistest.URL(t))
	client, err := xstreamq.Open(proxy.URL(), xstreamq.Config{KeyPrefix: r.prefix})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	proxy.BlackHole()
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	var asked sync.WaitGroup
	for _, i := range allInspections() {
		asked.Go(func() {
			begun := time.Now()
			if _, err := i.ask(short, client, "q", "g"); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) > 4*time.Second {
				t.Errorf("%s after %v: %v", i.name, time.Since(begun), err)
			}
		})
	}
	asked.Wait()
}

// Looking takes XREVRANGE, ZCARD and HSCAN besides what a worker needs, and reads alone. The registry may be left out, but for the operations
// about it.
func TestInspectionPermissions(t *testing.T) {
	t.Parallel()
	const keys = "~app:{q}*"
	const commands = "+hello +ping +eval +evalsha +type +time +exists +xlen +xinfo|groups +xinfo|consumers +xpending +xrange +xrevrange +zcard +zrange"
	server, admin := aclServer(t, keys, commands)
	r := newInspectRigAt(t, server.URL(), "app:")
	r.run(inspectEverywhere)
	healthCommand(t, admin, "ACL", "SETUSER", "full", "on", ">secret", keys, "~app:xstreamq:registry", "+hkeys", "+hscan")
	for word := range strings.FieldsSeq(commands) {
		healthCommand(t, admin, "ACL", "SETUSER", "full", word)
	}
	for user, whole := range map[string]bool{"app": false, "full": true} {
		client, err := xstreamq.Open("redis://"+user+":secret@"+server.Addr(), xstreamq.Config{KeyPrefix: "app:"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		for _, i := range allInspections() {
			_, err := i.ask(r.ctx, client, "q", "g")
			if allowed := whole || i.name != "Registered" && i.name != "Groups"; allowed != (err == nil) {
				t.Errorf("%s as %s: %v", i.name, user, err)
			}
			if err != nil && !strings.Contains(err.Error(), "key app:xstreamq:registry: ") {
				t.Errorf("%s does not say what is refused: %v", i.name, err)
			}
			if _, err := i.ask(r.ctx, client, "q", "unknown"); strings.HasPrefix(i.name, "Peek backoff") && !errors.Is(err, xstreamq.ErrNoGroup) {
				t.Errorf("%s as %s of a group that is not there: %v", i.name, user, err)
			}
		}
		if user == "full" {
			continue
		}
		// Of another queue nothing may be asked, and the error names it.
		for _, i := range inspections() {
			_, err := i.ask(r.ctx, client, "secret", "g")
			var refused *rueidis.RedisError
			named := err != nil && (strings.Contains(err.Error(), "key app:{secret}") || strings.Contains(err.Error(), `queue "secret"`))
			if !errors.As(err, &refused) || !named {
				t.Errorf("%s of another queue: %v", i.name, err)
			}
		}
	}
}
