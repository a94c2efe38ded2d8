package xstreamq_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
	"github.com/xstreamq/xstreamq/internal/wire"
)

// foreignWait bounds every wait for something that takes a moment: the machine may be busy with other tests.
const foreignWait = 60 * time.Second

// foreignRig is a client with a queue, "q" unless another is named, under a prefix of its own, and a plain connection to look from
// outside.
type foreignRig struct {
	t      *testing.T
	prefix string
	name   string
	redis  rueidis.Client
	client *xstreamq.Client
	queue  *xstreamq.Queue[[]byte]
}

func newForeignRig(t *testing.T, cfg xstreamq.Config) *foreignRig {
	t.Helper()
	cfg.KeyPrefix = redistest.Prefix(t)
	r := &foreignRig{t: t, prefix: cfg.KeyPrefix, name: "q", redis: redistest.Client(t), client: open(t, cfg)}
	r.queue = foreignQueue(t, r.client, "q", xstreamq.WithCodec[[]byte](xstreamq.Bytes{}))
	return r
}

func foreignQueue[T any](t *testing.T, c *xstreamq.Client, name string, opts ...xstreamq.QueueOption[T]) *xstreamq.Queue[T] {
	t.Helper()
	q, err := xstreamq.NewQueue(c, name, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// foreignAwait receives from a channel, and ends the test when nothing comes.
func foreignAwait[T any](t *testing.T, c <-chan T) (v T) {
	t.Helper()
	timer := time.NewTimer(foreignWait)
	defer timer.Stop()
	select {
	case v = <-c:
		return v
	case <-timer.C:
		t.Fatalf("waited %v in vain for a %T", foreignWait, v)
		return v
	}
}

// key is a key of the queue, by what follows its hash tag.
func (r *foreignRig) key(suffix string) string { return r.prefix + "{" + r.name + "}" + suffix }

func (r *foreignRig) subscribe(group string, handle xstreamq.Handler[[]byte], opts xstreamq.SubscribeOptions) *xstreamq.Subscription {
	r.t.Helper()
	sub, err := r.queue.Subscribe(group, handle, opts)
	if err != nil {
		r.t.Fatal(err)
	}
	return sub
}

func (r *foreignRig) start() {
	r.t.Helper()
	if err := r.client.Start(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
}

func (r *foreignRig) stop() {
	r.t.Helper()
	if err := r.client.Stop(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
}

func (r *foreignRig) publish(body string, opts ...xstreamq.PublishOption) string {
	r.t.Helper()
	id, err := r.queue.Publish(r.t.Context(), []byte(body), opts...)
	if err != nil {
		r.t.Fatal(err)
	}
	return id
}

// do sends a command as it would be typed into redis-cli; the first argument after its name is a key.
func (r *foreignRig) do(command, key string, args ...string) rueidis.RedisResult {
	r.t.Helper()
	return foreignDo(r.t, r.redis, command, key, args...)
}

func foreignDo(t *testing.T, rc rueidis.Client, command, key string, args ...string) rueidis.RedisResult {
	t.Helper()
	result := rc.Do(context.Background(), rc.B().Arbitrary(strings.Fields(command)...).Keys(key).Args(args...).Build())
	if err := result.Error(); err != nil && !rueidis.IsRedisNil(err) {
		t.Fatalf("%s %s: %v", command, key, err)
	}
	return result
}

// add is XADD to the queue, as any client may send it.
func (r *foreignRig) add(fields ...string) string {
	r.t.Helper()
	id, err := r.do("XADD", r.key(""), append([]string{"*"}, fields...)...).ToString()
	if err != nil {
		r.t.Fatal(err)
	}
	return id
}

// vanish reads what is in the queue for a worker that is never heard of again.
func (r *foreignRig) vanish(group string, lease string) {
	r.t.Helper()
	r.do("XGROUP CREATE", r.key(""), group, "0", "MKSTREAM")
	cmd := r.redis.B().Xreadgroup().Group(group, "vanished~"+lease).Streams().Key(r.key("")).Id(">").Build()
	if err := r.redis.Do(context.Background(), cmd).Error(); err != nil {
		r.t.Fatal(err)
	}
}

func (r *foreignRig) len(suffix string) int64 {
	r.t.Helper()
	command := "XLEN"
	if strings.HasSuffix(suffix, "delayed") {
		command = "ZCARD"
	}
	n, err := r.do(command, r.key(suffix)).AsInt64()
	if err != nil {
		r.t.Fatal(err)
	}
	return n
}

// openScript counts, at one moment, what of a group has not ended: not read, pending, waiting or on the retry stream.
const openScript = `
local n = redis.call('XLEN', KEYS[2]) + redis.call('ZCARD', KEYS[3]) + redis.call('ZCARD', KEYS[4])
local groups = redis.call('XINFO', 'GROUPS', KEYS[1])
for i = 1, #groups do
  local g = {}
  for j = 1, #groups[i], 2 do g[groups[i][j]] = groups[i][j + 1] end
  if g.name == ARGV[1] then
    local stream = redis.call('XINFO', 'STREAM', KEYS[1])
    local last = '0-0'
    for j = 1, #stream, 2 do
      if stream[j] == 'last-generated-id' then last = stream[j + 1] end
    end
    if last ~= g['last-delivered-id'] then n = n + 1 end
    return n + g.pending
  end
end
return n + 1`

// open returns how many messages of a group have not ended; those not read yet count as one.
func (r *foreignRig) open(group string) int64 {
	r.t.Helper()
	cmd := r.redis.B().Eval().Script(openScript).Numkeys(4).
		Key(r.key(""), r.key("."+group+".retry"), r.key("."+group+".delayed"), r.key(".delayed")).Arg(group).Build()
	n, err := r.redis.Do(context.Background(), cmd).AsInt64()
	if err != nil {
		r.t.Fatal(err)
	}
	return n
}

// waitEnded waits until every message of a group is handled or dead.
func (r *foreignRig) waitEnded(group string) {
	r.t.Helper()
	redistest.WaitFor(r.t, foreignWait, "every message of "+group+" handled or dead", func() bool { return r.open(group) == 0 })
}

// foreignEntry is one entry of a stream, duplicate names and all.
type foreignEntry struct {
	ID     string
	Fields []string
}

func (r *foreignRig) entries(suffix string) []foreignEntry {
	r.t.Helper()
	slice, err := r.do("XRANGE", r.key(suffix), "-", "+").AsXRangeSlices()
	if err != nil {
		r.t.Fatal(err)
	}
	out := make([]foreignEntry, len(slice))
	for i, e := range slice {
		out[i].ID = e.ID
		for _, f := range e.FieldValues {
			out[i].Fields = append(out[i].Fields, f.Field, f.Value)
		}
	}
	return out
}

// envelopeNames are the fields that the engine writes itself.
var envelopeNames = []string{"oid", "pub", "rc", "lc", "err", "reason", "at", "from", "by"}

// all returns every value of a field.
func (e foreignEntry) all(name string) []string {
	var values []string
	for i := 0; i < len(e.Fields); i += 2 {
		if e.Fields[i] == name {
			values = append(values, e.Fields[i+1])
		}
	}
	return values
}

// get returns the only value of a field, or "" when it is absent or ambiguous.
func (e foreignEntry) get(name string) string {
	if values := e.all(name); len(values) == 1 {
		return values[0]
	}
	return ""
}

// strangers returns the fields that are not the engine's, the first body first. An entry of too many fields for a script to write
// has the rest of them packed into one.
func (e foreignEntry) strangers(t *testing.T, packed bool) []string {
	t.Helper()
	var body, rest []string
	for i := 0; i < len(e.Fields); i += 2 {
		name, value := e.Fields[i], e.Fields[i+1]
		switch {
		case slices.Contains(envelopeNames, name):
		case packed && name == "xq:packed":
			more, err := wire.Unpack(value)
			if err != nil {
				t.Errorf("entry %s: %v", e.ID, err)
			}
			rest = append(rest, more...)
		case name == "body" && body == nil:
			body = []string{name, value}
		default:
			rest = append(rest, name, value)
		}
	}
	return append(body, rest...)
}

// foreignInbox collects what handlers get.
type foreignInbox struct {
	mu  sync.Mutex
	got []xstreamq.Delivery
}

func (b *foreignInbox) add(d xstreamq.Delivery) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.got = append(b.got, d)
}

func (b *foreignInbox) all() []xstreamq.Delivery {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.got)
}

func (b *foreignInbox) len() int { return len(b.all()) }

// of returns the deliveries of one message, in order.
func (b *foreignInbox) of(original string) []xstreamq.Delivery {
	var out []xstreamq.Delivery
	for _, d := range b.all() {
		if d.OriginalID == original {
			out = append(out, d)
		}
	}
	return out
}

// heldGate stops a handler until the test lets it go.
type heldGate struct {
	in  chan xstreamq.Delivery
	out chan error
}

func newHeldGate() heldGate {
	return heldGate{make(chan xstreamq.Delivery), make(chan error)}
}

func (g heldGate) handle(ctx context.Context, m *xstreamq.Message[[]byte]) error {
	select {
	case g.in <- m.Delivery:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-g.out:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// next waits for the next delivery to reach the handler.
func (g heldGate) next(t *testing.T) xstreamq.Delivery {
	t.Helper()
	return foreignAwait(t, g.in)
}
