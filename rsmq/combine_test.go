package rsmq

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

// counting is a combiner whose calls take a second, and notes them: the key, and how many share it.
type counting struct {
	combiner[string, int, int]
	mu        sync.Mutex
	served    []string
	abandoned []int
}

func newCounting() *counting {
	c := &counting{}
	c.serve = func(_ context.Context, key string, items []int) []outcome[int] {
		c.mu.Lock()
		c.served = append(c.served, fmt.Sprintf("%s %d", key, len(items)))
		c.mu.Unlock()
		time.Sleep(time.Second)
		out := make([]outcome[int], len(items))
		for i, item := range items {
			if out[i].value = -item; item == 0 {
				out[i].err = errOfZero
			}
		}
		return out
	}
	c.abandon = func(_ string, n int) { c.abandoned = append(c.abandoned, n) }
	return c
}

var errOfZero = errors.New("zero")

// A call is made at once while few are under way; those that come then share the next ones, and each gets its own result.
func TestCombine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCounting()
		var wg sync.WaitGroup
		for i := range combineFlights + combineMost + 20 {
			wg.Go(func() {
				n, err := c.do(t.Context(), "a", i)
				if n != -i || errors.Is(err, errOfZero) != (i == 0) {
					t.Errorf("call %d: %d, %v", i, n, err)
				}
			})
			synctest.Wait()
		}
		if _, err := c.do(t.Context(), "b", 1); err != nil {
			t.Error(err)
		}
		wg.Wait()
		want := append(slices.Repeat([]string{"a 1"}, combineFlights), "b 1", fmt.Sprintf("a %d", combineMost), "a 20")
		slices.Sort(want[combineFlights:])
		slices.Sort(c.served[combineFlights:])
		if diff := cmp.Diff(want, c.served); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		synctest.Wait()
		if len(c.lanes) > 0 {
			t.Errorf("%d lanes are left", len(c.lanes))
		}
	})
}

// A caller that leaves before its call begins is not served; one that leaves later is not told, and its result is given up.
func TestCombineLeaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCounting()
		errs := make([]error, combineFlights+3)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				if i == 1 || i == combineFlights+1 {
					ctx, cancel = context.WithTimeout(t.Context(), time.Second/2)
				}
				defer cancel()
				_, errs[i] = c.do(ctx, "a", i+1)
			})
			synctest.Wait()
		}
		wg.Wait()
		for i, err := range errs {
			var unsent *unsentError
			left := i == 1 || i == combineFlights+1
			if errors.Is(err, context.DeadlineExceeded) != left || errors.As(err, &unsent) != (i == combineFlights+1) {
				t.Errorf("call %d: %v", i, err)
			}
		}
		synctest.Wait()
		if diff := cmp.Diff(append(slices.Repeat([]string{"a 1"}, combineFlights), "a 2"), c.served); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]int{-2}, c.abandoned); diff != "" {
			t.Errorf("given up (-want +got):\n%s", diff)
		}
	})
}

// A call without a deadline is given one, whatever the others do.
func TestCombineIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var c combiner[string, int, int]
		c.serve = func(_ context.Context, _ string, items []int) []outcome[int] {
			<-release
			return make([]outcome[int], len(items))
		}
		for range combineFlights + 1 {
			began := time.Now()
			if _, err := c.do(t.Context(), "a", 1); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != commandTimeout {
				t.Errorf("%v after %s", err, time.Since(began))
			}
		}
		close(release)
	})
}

// A shared call lasts for as long as its most patient caller waits.
func TestCombineWaitsForThePatient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c combiner[string, time.Duration, time.Duration]
		c.serve = func(ctx context.Context, _ string, items []time.Duration) []outcome[time.Duration] {
			end, _ := ctx.Deadline()
			left := time.Until(end)
			time.Sleep(time.Second) // so that the others wait for the next one
			return slices.Repeat([]outcome[time.Duration]{{value: left}}, len(items))
		}
		together(combineFlights+3, func(i int) {
			ctx := t.Context()
			if i > 0 {
				limited, cancel := context.WithTimeout(ctx, time.Minute)
				defer cancel()
				ctx = limited
			}
			time.Sleep(time.Duration(i) * time.Millisecond)
			left, err := c.do(ctx, "a", 0)
			want := time.Minute
			switch {
			case i == 0:
				want = commandTimeout
			case i >= combineFlights:
				want = time.Minute - time.Second // it waited for one under way
			}
			if err != nil || (left-want).Abs() > 10*time.Millisecond {
				t.Errorf("call %d has %s, want %s: %v", i, left, want, err)
			}
		})
	})
}

// Many callers at once get each message once, and lose none.
func TestManyCallers(t *testing.T) {
	t.Parallel()
	const callers, each = 64, 20
	c := fresh(t, Config{})
	create(t, c, "q", QueueOptions{})
	var mu sync.Mutex
	sent, got := map[string]string{}, map[string]string{}
	together(callers, func(i int) {
		for n := range each {
			body := fmt.Sprint(i, " ", n)
			id, err := c.SendMessage(t.Context(), "q", body, SendOptions{})
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			sent[id] = body
			mu.Unlock()
		}
	})
	together(callers, func(i int) {
		for n := range each {
			var m Message
			var ok, deleted bool
			var err error
			if (i+n)%2 == 0 {
				m, ok, err = c.PopMessage(t.Context(), "q")
			} else if m, ok, err = c.ReceiveMessage(t.Context(), "q", ReceiveOptions{}); ok {
				deleted, err = c.DeleteMessage(t.Context(), "q", m.ID)
				ok = ok && deleted
			}
			if err != nil || !ok || m.ReceiveCount != 1 {
				t.Errorf("%+v, %v, %v", m, ok, err)
			}
			mu.Lock()
			got[m.ID] = m.Body
			mu.Unlock()
		}
	})
	if diff := cmp.Diff(sent, got); diff != "" || len(sent) != callers*each {
		t.Errorf("%d sent; (-sent +got):\n%s", len(sent), diff)
	}
	if a := attributes(t, c, "q"); a.Messages != 0 || a.Sent != callers*each || a.Received != callers*each {
		t.Errorf("attributes: %+v", a)
	}
}

func together(n int, do func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { do(i) })
	}
	wg.Wait()
}

// A body that is refused harms no other that is sent at the same time.
func TestBadBodyAmongOthers(t *testing.T) {
	t.Parallel()
	c := fresh(t, Config{})
	create(t, c, "q", QueueOptions{MaxSize: Size(1024)})
	together(40, func(i int) {
		body, want := fmt.Sprint(i), error(nil)
		switch i % 10 {
		case 3:
			body, want = strings.Repeat("x", 1025), ErrMessageTooLong
		case 7:
			body, want = "\xff", ErrMessageNotString
		}
		for range 10 {
			if _, err := c.SendMessage(t.Context(), "q", body, SendOptions{}); !errors.Is(err, want) {
				t.Errorf("%d: %v, want %v", i, err, want)
			}
		}
	})
	if a := attributes(t, c, "q"); a.Messages != 320 || a.Sent != 320 {
		t.Errorf("attributes: %+v", a)
	}
}

// Callers that share a call each get a message also when all of them are more than one answer holds.
func TestLargeBodiesForMany(t *testing.T) {
	t.Parallel()
	c := fresh(t, Config{})
	create(t, c, "q", QueueOptions{MaxSize: Size(Unlimited)})
	body := strings.Repeat("x", 300<<10)
	together(16, func(int) { send(t, c, "q", body) })
	for _, o := range serveDeliveries(t.Context(), queueTime{"q", 60000}, 12, c.receive) {
		if o.err != nil || len(o.value.ms) != 1 || o.value.ms[0].Body != body {
			t.Errorf("received %d messages: %v", len(o.value.ms), o.err)
		}
	}
	last := serveDeliveries(t.Context(), queueTime{queue: "q"}, 6, c.pop)
	for i, o := range last {
		if want := i < 4; o.err != nil || (len(o.value.ms) == 1) != want {
			t.Errorf("popped %d messages: %v", len(o.value.ms), o.err)
		}
	}
	if next := last[5].value.next; next <= 0 || next > time.Minute {
		t.Errorf("the next one is due in %s", next)
	}
}

// Messages for a caller that does not wait any more are given back, in their order.
func TestReceiveGivesBack(t *testing.T) {
	t.Parallel()
	for name, receive := range map[string]func(context.Context, *Client, ReceiveOptions) error{
		"one": func(ctx context.Context, c *Client, o ReceiveOptions) error {
			_, _, err := c.ReceiveMessage(ctx, "q", o)
			return err
		},
		"several": func(ctx context.Context, c *Client, o ReceiveOptions) error {
			_, err := c.ReceiveMessages(ctx, "q", 2, o)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := redistest.NewProxy(t, redistest.URL(t))
			c := opened(t, proxy.URL(), Config{Namespace: redistest.Prefix(t)})
			create(t, c, "q", QueueOptions{})
			ids := send(t, c, "q", "a")
			if name == "several" {
				ids = append(ids, send(t, c, "q", "b")...)
			}
			proxy.BlackHole()
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if err := receive(ctx, c, ReceiveOptions{VisibilityTimeout: Seconds(3600)}); !errors.Is(err, ErrUncertain) {
				t.Error(err)
			}
			proxy.Pass()
			redistest.WaitFor(t, 10*time.Second, "the messages to come back", func() bool {
				a := attributes(t, c, "q")
				return a.Received == int64(len(ids)) && a.Visible == a.Received
			})
			ms, err := c.PopMessages(t.Context(), "q", 10)
			if err != nil || len(ms) != len(ids) || ms[0].ID != ids[0] {
				t.Errorf("%+v, %v", ms, err)
			}
		})
	}
}

// A connection whose server is silent is given up, and what waits for it fails, although a caller is patient.
func TestSilentConnectionIsGivenUp(t *testing.T) {
	t.Parallel()
	proxy := redistest.NewProxy(t, redistest.URL(t))
	c := opened(t, proxy.URL(), Config{Namespace: redistest.Prefix(t)})
	create(t, c, "q", QueueOptions{})
	proxy.BlackHole()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	began := time.Now()
	if _, err := c.SendMessage(ctx, "q", "m", SendOptions{}); !errors.Is(err, ErrUncertain) || errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if took := time.Since(began); took > 9*time.Second {
		t.Errorf("it took %s", took)
	}
}

// countingClient counts the calls.
type countingClient struct {
	rueidis.Client
	calls atomic.Int32
}

func (c *countingClient) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	c.calls.Add(1)
	return c.Client.Do(ctx, cmd)
}

// Few calls find a bad body among many.
func TestBadBodyCostsFewCalls(t *testing.T) {
	t.Parallel()
	c := fresh(t, Config{})
	create(t, c, "q", QueueOptions{MaxSize: Size(1024)})
	send(t, c, "q", "the server knows the script now")
	counted := &countingClient{Client: c.redis}
	c.redis = counted
	bodies := slices.Repeat([]string{"m"}, sendMost)
	bodies[61] = strings.Repeat("x", 1025)
	for i, o := range c.serveSends(t.Context(), queueTime{"q", asQueueSays}, bodies) {
		if bad := i == 61; errors.Is(o.err, ErrMessageTooLong) != bad || (o.value == "") != bad {
			t.Errorf("%d: %+v", i, o)
		}
	}
	if n := counted.calls.Load(); n > 20 {
		t.Errorf("%d calls", n)
	}
	if a := attributes(t, c, "q"); a.Sent != sendMost {
		t.Errorf("%+v", a)
	}
}
