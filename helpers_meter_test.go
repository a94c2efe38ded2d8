package xstreamq_test

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

// stalls is what no call of a bounded length takes of the server's time, and what an unbounded one does.
const stalls = 40 * time.Millisecond

// meter is a rueidis client that measures for how long each of its commands keeps the server, by the processor time of its main
// thread: a busy machine does not change that much. The server serves nobody else meanwhile.
type meter struct {
	rueidis.Client
	t    *testing.T
	libc bool // see check
	most map[string]time.Duration
}

func newMeter(t *testing.T, url string) *meter {
	t.Helper()
	m := &meter{Client: redistest.Dial(t, url), t: t, most: map[string]time.Duration{}}
	m.libc = strings.Contains(m.info("memory"), "mem_allocator:libc")
	return m
}

func (m *meter) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	name, begun := cmd.Commands()[0], m.used()
	result := m.Client.Do(ctx, cmd)
	m.most[name] = max(m.most[name], m.used()-begun)
	return result
}

func (m *meter) DoMulti(ctx context.Context, cmds ...rueidis.Completed) []rueidis.RedisResult {
	results := make([]rueidis.RedisResult, len(cmds))
	for i, cmd := range cmds {
		results[i] = m.Do(ctx, cmd)
	}
	return results
}

func (m *meter) info(section string) string {
	m.t.Helper()
	text, err := m.Client.Do(context.Background(), m.B().Info().Section(section).Build()).ToString()
	if err != nil {
		m.t.Fatal(err)
	}
	return text
}

var mainThread = regexp.MustCompile(`used_cpu_(?:sys|user)_main_thread:([\d.]+)`)

func (m *meter) used() (d time.Duration) {
	found := mainThread.FindAllStringSubmatch(m.info("cpu"), -1)
	if len(found) == 0 {
		m.t.Log("NOT MEASURED: this server does not tell the time of its main thread")
	}
	for _, f := range found {
		seconds, _ := strconv.ParseFloat(f[1], 64)
		d += time.Duration(seconds * float64(time.Second))
	}
	return d
}

// check fails when a command kept the server for longer than bound, and begins anew. A server on the malloc of the C library is not held to it: that puts the many
// small pieces which were freed before together in one go, in whichever command comes next, however little that one does.
func (m *meter) check(what string, bound time.Duration) {
	m.t.Helper()
	m.t.Logf("%s: %v", what, m.most)
	for command, d := range m.most {
		switch {
		case d <= bound:
		case m.libc:
			m.t.Logf("NOT HELD TO %v: %s: %s kept the server for %v, which runs on the malloc of libc, not on jemalloc", bound, what, command, d)
		default:
			m.t.Errorf("%s: %s kept the server for %v", what, command, d)
		}
	}
	clear(m.most)
}
