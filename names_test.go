package xstreamq_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// badNames are names that may not go into a key, each with what an error must say about it.
var badNames = []struct{ name, says string }{
	{"a{b", `'{'`},
	{"}", `'}'`},
	{"{}", `'{'`},
	{"a\nb", `'\n'`},
	{"a\rb", `'\r'`},
	{"a b", `' '`},
	{" ", `' '`},
	{"\ta", `'\t'`},
	{"a\x00", `'\x00'`},
	{"a/b", `'/'`},
	{"a*", `'*'`},
	{"a~1", `'~'`},
	{`a"`, `'"'`},
	{`a\`, `'\\'`},
	{"café", `'é'`},
	{"注文", `'注'`},
	{"a\u202eb", `'\u202e'`},
	{"\xff", `'�'`},
	{strings.Repeat("é", 50), `'é'`}, // 50 characters, but 100 bytes
}

func checkRefused(t *testing.T, err error, says string) {
	t.Helper()
	if !errors.Is(err, xstreamq.ErrInvalidName) || !strings.Contains(err.Error(), says) {
		t.Errorf("got %v, want ErrInvalidName that says %s", err, says)
	}
	if err != nil && strings.ContainsAny(err.Error(), "\n\r\x00\u202e") {
		t.Errorf("the error passes control characters on: %q", err)
	}
}

// Names (P8): a queue or group name, KeyPrefix or ConsumerName that may not go into a key is refused, and the character named.
func TestBadNames(t *testing.T) {
	t.Parallel()
	c := open(t, xstreamq.Config{})
	tooLong := func(n int) string { return strings.Repeat("x", n) }
	longest := func(n int) string { return "longer than " + strconv.Itoa(n) + " characters" }
	places := []struct {
		what  string
		limit int
		empty bool // allowed
		try   func(name string) error
	}{
		{"queue", 160, false, func(name string) error {
			_, err := xstreamq.NewQueue[string](c, name)
			return err
		}},
		{"group", 160, false, func(name string) error {
			q := foreignQueue[string](t, c, "q")
			_, err := q.Subscribe(name, func(context.Context, *xstreamq.Message[string]) error { return nil }, xstreamq.SubscribeOptions{})
			return err
		}},
		{"KeyPrefix", 64, true, func(name string) error {
			_, err := xstreamq.New(redistest.Client(t), xstreamq.Config{KeyPrefix: name})
			return err
		}},
		{"ConsumerName", 120, true, func(name string) error {
			_, err := xstreamq.New(redistest.Client(t), xstreamq.Config{ConsumerName: name})
			return err
		}},
	}
	for _, p := range places {
		t.Run(p.what, func(t *testing.T) {
			t.Parallel()
			for _, bad := range badNames {
				checkRefused(t, p.try(bad.name), bad.says)
				checkRefused(t, p.try(bad.name), p.what)
			}
			checkRefused(t, p.try(tooLong(p.limit+1)), longest(p.limit))
			checkRefused(t, p.try(tooLong(1<<20)), longest(p.limit))
			if p.empty {
				if err := p.try(""); err != nil {
					t.Error(err)
				}
			} else {
				checkRefused(t, p.try(""), "is empty")
			}
			if err := p.try(tooLong(p.limit)); err != nil {
				t.Errorf("%d characters are refused: %v", p.limit, err)
			}
			if err := p.try("-:.@_az09AZ"); err != nil {
				t.Error(err)
			}
		})
	}
}

// Names: valid ones that look like parts of keys work side by side, each group with its own retries and dead letters.
func TestEdgeNamesWorkSideBySide(t *testing.T) {
	t.Parallel()
	groups := map[string][]string{
		"a:b":                    {"svc", "svc.retry", "svc.retry.retry", "svc.dlq", "x", "x-retry"},
		"a":                      {"b", "delayed", "retry"},
		":lock:reclaim:svc":      {"svc"},
		"-":                      {"@"},
		strings.Repeat("q", 160): {strings.Repeat("g", 160)},
	}
	prefix := redistest.Prefix(t)
	prefix += strings.Repeat("-", 64-len(prefix))
	c := open(t, xstreamq.Config{KeyPrefix: prefix, ConsumerName: strings.Repeat("c", 120)})
	type delivery struct {
		queue, group, body string
		attempt            int
	}
	seen := make(chan delivery, 1000)
	dead := make(chan delivery, 1000)
	want := map[delivery]bool{}
	for queue, names := range groups {
		q := foreignQueue(t, c, queue, xstreamq.WithCodec[string](xstreamq.String{}))
		for _, group := range names {
			_, err := q.Subscribe(group, func(_ context.Context, m *xstreamq.Message[string]) error {
				seen <- delivery{m.Queue, m.Group, m.Body, m.Attempt}
				if m.Body == "bad" || m.Attempt == 1 {
					return errors.New("no")
				}
				return nil
			}, xstreamq.SubscribeOptions{
				Concurrency: 1, MaxRetries: 1, Backoff: xstreamq.Backoff{Initial: time.Millisecond},
				OnDeadLetter: func(_ context.Context, d xstreamq.DeadMessage) {
					dead <- delivery{d.Queue, d.Group, string(d.Body), d.Failures}
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, body := range []string{"good", "bad"} {
				want[delivery{queue, group, body, 1}] = true
				want[delivery{queue, group, body, 2}] = true
			}
		}
		for _, body := range []string{"good", "bad"} {
			if _, err := q.Publish(t.Context(), body, xstreamq.WithDelay(time.Millisecond)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range len(want) / 4 { // every group has one dead letter
		if d := foreignAwait(t, dead); d.body != "bad" || d.attempt != 2 {
			t.Errorf("dead letter %+v", d)
		}
	}
	for len(want) > 0 {
		d := foreignAwait(t, seen)
		if !want[d] {
			t.Errorf("delivery %+v came twice, or to the wrong group", d)
		}
		delete(want, d)
	}
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(seen)+len(dead) > 0 {
		t.Errorf("%d deliveries and %d dead letters too many", len(seen), len(dead))
	}
}

// Configuration: all mistakes in a Config are reported at once, by Open and New alike, before anybody is talked to.
func TestConfigMistakes(t *testing.T) {
	t.Parallel()
	bad := []struct {
		says string
		set  func(*xstreamq.Config)
	}{
		{"KeyPrefix", func(c *xstreamq.Config) { c.KeyPrefix = "a b" }},
		{"ConsumerName", func(c *xstreamq.Config) { c.ConsumerName = "a b" }},
		{"DrainTimeout", func(c *xstreamq.Config) { c.DrainTimeout = -1 }},
		{"CancelGrace", func(c *xstreamq.Config) { c.CancelGrace = -time.Hour }},
		{"MaxBodySize", func(c *xstreamq.Config) { c.MaxBodySize = -1 }},
	}
	check := func(cfg xstreamq.Config, says ...string) {
		t.Helper()
		_, openErr := xstreamq.Open("redis://127.0.0.1:1", cfg)
		_, newErr := xstreamq.New(redistest.Client(t), cfg)
		for _, err := range []error{openErr, newErr} {
			checkMistakes(t, err, says)
		}
	}
	var all xstreamq.Config
	var names []string
	for _, b := range bad {
		var cfg xstreamq.Config
		b.set(&cfg)
		check(cfg, b.says)
		b.set(&all)
		names = append(names, b.says)
	}
	check(all, names...)
	if _, err := xstreamq.New(nil, xstreamq.Config{}); !errors.Is(err, xstreamq.ErrInvalidConfig) {
		t.Errorf("New without a client: %v", err)
	}
	if _, err := xstreamq.NewQueue[string](nil, "q"); !errors.Is(err, xstreamq.ErrInvalidConfig) {
		t.Errorf("NewQueue without a client: %v", err)
	}
}

func checkMistakes(t *testing.T, err error, says []string) {
	t.Helper()
	if !errors.Is(err, xstreamq.ErrInvalidConfig) {
		t.Errorf("got %v, want ErrInvalidConfig", err)
		return
	}
	for _, s := range says {
		if strings.Count(err.Error(), s) < 1 {
			t.Errorf("the error does not name %s: %v", s, err)
		}
	}
	if got := strings.Count(err.Error(), "must") + strings.Count(err.Error(), "allowed are"); got != len(says) {
		t.Errorf("the error names %d mistakes, want %d: %v", got, len(says), err)
	}
}

// Configuration: all mistakes in SubscribeOptions are reported at once.
func TestSubscribeOptionMistakes(t *testing.T) {
	t.Parallel()
	type options = xstreamq.SubscribeOptions
	q := foreignQueue[string](t, open(t, xstreamq.Config{}), "q")
	handle := func(context.Context, *xstreamq.Message[string]) error { return nil }
	check := func(o options, says ...string) {
		t.Helper()
		_, err := q.Subscribe("g", handle, o)
		checkMistakes(t, err, says)
	}
	var all options
	var names []string
	for _, b := range []struct {
		says string
		set  func(*options)
	}{
		{"Concurrency", func(o *options) { o.Concurrency = -1 }},
		{"VisibilityTimeout", func(o *options) { o.VisibilityTimeout = 99 * time.Millisecond }},
		{"VisibilityTimeout", func(o *options) { o.VisibilityTimeout = -time.Second }},
		{"HandlerTimeout", func(o *options) { o.HandlerTimeout = -1 }},
		{"MaxRetries", func(o *options) { o.MaxRetries = -2 }},
		{"MaxLostLeases", func(o *options) { o.MaxLostLeases = math.MinInt }},
		{"Backoff.Multiplier", func(o *options) { o.Backoff.Multiplier = math.NaN() }},
		{"Backoff.Multiplier", func(o *options) { o.Backoff.Multiplier = math.Inf(1) }},
		{"Backoff.Multiplier", func(o *options) { o.Backoff.Multiplier = 0.99 }},
		{"Backoff.Max", func(o *options) { o.Backoff.Initial, o.Backoff.Max = 2, 1 }},
		{"Dedupe", func(o *options) { o.Dedupe = time.Microsecond }},
		{"Dedupe", func(o *options) { o.Dedupe = -1 }},
		{"StartFrom", func(o *options) { o.StartFrom = "5-0" }},
		{"RetryMaxLen", func(o *options) { o.RetryMaxLen = -1 }},
		{"Middleware", func(o *options) { o.Middleware = []xstreamq.Middleware{nil} }},
	} {
		var o options
		b.set(&o)
		check(o, b.says)
		b.set(&all)
		if !strings.Contains(strings.Join(names, " "), b.says) {
			names = append(names, b.says)
		}
	}
	check(all, names...)
	if _, err := q.Subscribe("g", nil, options{}); !errors.Is(err, xstreamq.ErrInvalidConfig) {
		t.Errorf("Subscribe without a handler: %v", err)
	}
}

// Configuration: the largest values are no mistakes, and what works with them still works.
func TestLargestOptions(t *testing.T) {
	t.Parallel()
	r := newForeignRig(t, xstreamq.Config{
		DrainTimeout: math.MaxInt64, CancelGrace: math.MaxInt64, CompactEvery: math.MaxInt64, Retain: math.MaxInt64,
		MaxBodySize: math.MaxInt,
	})
	done := make(chan int, 10)
	r.subscribe("g", func(_ context.Context, m *xstreamq.Message[[]byte]) error {
		if m.Attempt == 1 {
			return errors.New("once more")
		}
		done <- m.Attempt
		return nil
	}, xstreamq.SubscribeOptions{
		VisibilityTimeout: math.MaxInt64, MaxExtension: math.MaxInt64, HandlerTimeout: math.MaxInt64, Dedupe: math.MaxInt64,
		MaxRetries: xstreamq.RetryForever, MaxLostLeases: xstreamq.RetryForever, RetryMaxLen: math.MaxInt, Prefetch: 1000,
		Backoff: xstreamq.Backoff{Initial: time.Millisecond, Max: math.MaxInt64, Multiplier: math.MaxFloat64},
	})
	r.start()
	r.publish("b")
	if attempt := foreignAwait(t, done); attempt != 2 {
		t.Errorf("attempt %d, want 2", attempt)
	}
	r.waitEnded("g")
	if err := r.client.Healthy(t.Context()); err != nil {
		t.Error(err)
	}
	r.stop()
}

// Configuration (P8): the caller's structs and slices are read once, and never changed.
func TestCallersStructsAreLeftAlone(t *testing.T) {
	t.Parallel()
	r := newForeignRig(t, xstreamq.Config{})
	calls := make(chan string, 10)
	tell := func(name string) xstreamq.Middleware {
		return func(next func(context.Context, *xstreamq.Delivery) error) func(context.Context, *xstreamq.Delivery) error {
			return func(ctx context.Context, d *xstreamq.Delivery) error {
				calls <- name
				return next(ctx, d)
			}
		}
	}
	opts := xstreamq.SubscribeOptions{Middleware: []xstreamq.Middleware{tell("first"), tell("second")}}
	before := fmt.Sprintf("%+v", opts)
	r.subscribe("g", func(_ context.Context, m *xstreamq.Message[[]byte]) error {
		calls <- string(m.Body)
		return nil
	}, opts)
	if after := fmt.Sprintf("%+v", opts); after != before {
		t.Errorf("Subscribe changed its options\nfrom %s\nto   %s", before, after)
	}
	opts.Middleware[0], opts.Middleware[1] = tell("changed later"), nil
	r.start()

	body := []byte("body")
	options := []xstreamq.PublishOption{xstreamq.WithHeader("a", "1"), xstreamq.WithDelay(time.Millisecond)}
	batch := []xstreamq.Outgoing[[]byte]{{Body: body, Options: options}, {Body: body, Options: options[:1]}}
	for i, result := range r.queue.PublishBatch(t.Context(), batch) {
		if result.Err != nil || string(batch[i].Body) != "body" || len(batch[i].Options) != 2-i {
			t.Errorf("message %d: %v, left as %+v", i, result.Err, batch[i])
		}
	}
	copy(body, "BODY")
	for range 2 {
		for _, want := range []string{"first", "second", "body"} {
			if got := foreignAwait(t, calls); got != want {
				t.Errorf("%q was called, want %q", got, want)
			}
		}
	}
}
