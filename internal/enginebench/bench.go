package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq"
)

const (
	bodySize = 128
	queue    = "bench"
	stream   = "{bench}"
	group    = "g"
)

type bench struct {
	url       string
	n, rounds int
	bare      rueidis.Client // same settings as Open's
}

func newBench(url string, n, rounds int) (*bench, error) {
	opts, err := rueidis.ParseURL(url)
	if err != nil {
		return nil, err
	}
	// The settings of xstreamq.Open, so that both sides have the same connection.
	opts.DisableCache = true
	opts.AlwaysPipelining = true
	opts.PipelineMultiplex = -1
	opts.MaxFlushDelay = 20 * time.Microsecond
	opts.ReadBufferEachConn = 128 << 10
	opts.WriteBufferEachConn = 128 << 10
	c, err := rueidis.NewClient(opts)
	return &bench{url: url, n: n, rounds: rounds, bare: c}, err
}

func (b *bench) close() { b.bare.Close() }

func (b *bench) facts(ctx context.Context) string {
	info, _ := b.bare.Do(ctx, b.bare.B().Info().Section("server").Build()).ToString()
	return fmt.Sprintf("%s, %d CPUs (%s), %s, redis %s; %d-byte bodies, no-op handler, %d messages, %d rounds, no AOF, loopback",
		runtime.GOOS+"/"+runtime.GOARCH, runtime.NumCPU(), cpuModel(), runtime.Version(), field(info, "redis_version"),
		bodySize, b.n, b.rounds)
}

func cpuModel() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(info)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

func field(info, name string) string {
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

func (b *bench) flush(ctx context.Context) error {
	return b.bare.Do(ctx, b.bare.B().Flushall().Build()).Error()
}

// redisCPU is the CPU time the server has used so far.
func (b *bench) redisCPU(ctx context.Context) (time.Duration, error) {
	info, err := b.bare.Do(ctx, b.bare.B().Info().Section("cpu").Build()).ToString()
	if err != nil {
		return 0, err
	}
	var total float64
	for _, name := range []string{"used_cpu_sys", "used_cpu_user"} {
		v, err := strconv.ParseFloat(field(info, name), 64)
		if err != nil {
			return 0, err
		}
		total += v
	}
	return time.Duration(total * float64(time.Second)), nil
}

// timed is one timed run.
type timed struct {
	wall, redis time.Duration
	allocs      uint64
}

func (b *bench) timed(ctx context.Context, run func() error) (timed, error) {
	var before, after runtime.MemStats
	runtime.GC()
	cpu0, err := b.redisCPU(ctx)
	if err != nil {
		return timed{}, err
	}
	runtime.ReadMemStats(&before)
	start := time.Now()
	if err := run(); err != nil {
		return timed{}, err
	}
	t := timed{wall: time.Since(start)}
	runtime.ReadMemStats(&after)
	t.allocs = after.Mallocs - before.Mallocs
	cpu1, err := b.redisCPU(ctx)
	t.redis = cpu1 - cpu0
	return t, err
}

func (b *bench) rate(t timed) float64 { return float64(b.n) / t.wall.Seconds() }

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

// spread shows a median with its extremes.
func spread(format string, v []float64) string {
	return fmt.Sprintf(format+" ("+format+" to "+format+")", median(v), slices.Min(v), slices.Max(v))
}

func body() []byte { return []byte(strings.Repeat("x", bodySize)) }

// preload fills the queue and creates the group.
func (b *bench) preload(ctx context.Context) error {
	if err := b.flush(ctx); err != nil {
		return err
	}
	create := b.bare.B().XgroupCreate().Key(stream).Group(group).Id("0").Mkstream().Build()
	if err := b.bare.Do(ctx, create).Error(); err != nil {
		return err
	}
	for done := 0; done < b.n; done += 1000 {
		cmds := make(rueidis.Commands, 0, 1000)
		for range min(1000, b.n-done) {
			cmds = append(cmds, b.bare.B().Xadd().Key(stream).Id("*").FieldValue().FieldValue("body", string(body())).Build())
		}
		for _, r := range b.bare.DoMulti(ctx, cmds...) {
			if err := r.Error(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bench) open() (*xstreamq.Client, *xstreamq.Queue[[]byte], error) {
	c, err := xstreamq.Open(b.url, xstreamq.Config{})
	if err != nil {
		return nil, nil, err
	}
	q, err := xstreamq.NewQueue(c, queue, xstreamq.WithCodec[[]byte](xstreamq.Bytes{}))
	return c, q, err
}
