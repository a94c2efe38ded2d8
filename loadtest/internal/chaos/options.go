// Package chaos runs a queue under faults: a producer, worker processes that are killed and stopped, a server that is killed;
// then it waits until nothing is left, and has the oracle judge.
package chaos

import (
	"io"
	"math"
	"time"

	"github.com/xstreamq/xstreamq/loadtest/internal/message"
	"github.com/xstreamq/xstreamq/loadtest/internal/oracle"
	"github.com/xstreamq/xstreamq/loadtest/internal/report"
	"github.com/xstreamq/xstreamq/loadtest/internal/resp"
	"github.com/xstreamq/xstreamq/loadtest/internal/supervisor"
)

// Options describe a run.
type Options struct {
	// Name is that of the report, Settings what it says of the flags.
	Name     string
	Settings []report.Setting
	// URL is where the queue is, Keys what it is called. Own is the server at URL if it may be killed, else nil.
	URL  string
	Keys oracle.Keys
	Own  *supervisor.Server
	// Command and Env run a worker process.
	Command, Env []string
	// Dir is an empty directory for the journals and the logs.
	Dir string
	// Progress is where the progress of the run goes.
	Progress io.Writer

	// Messages are published at Rate per second, 0 is as fast as possible, with bodies of Body bytes, on Connections.
	Messages          int
	Rate              float64
	Body, Connections int
	// Workers are how many processes consume; the first Spared of them are left alone.
	Workers, Spared int
	// Groups are how many groups get each message.
	Groups int
	// Concurrency, Prefetch, Visibility, MaxLostLeases, Dedupe, Backoff and Handler are those of each worker. Zero is the
	// library's default, for Handler no time at all; a MaxLostLeases of zero is 5.
	Concurrency, Prefetch int
	Visibility            time.Duration
	MaxLostLeases         int
	Dedupe, Backoff       time.Duration
	Handler               time.Duration
	// Plan says which handlers fail; its seed is that of the run.
	Plan message.Plan
	// KillEvery, StopEvery and CrashEvery are the times between two faults of a kind: a worker is killed, a worker stands still
	// for one and a half times Visibility, the server is killed. 0: never.
	KillEvery, StopEvery, CrashEvery time.Duration
	// Drain is how long after the last publish everything must be done.
	Drain time.Duration
	// Window is how long after its end a handler may run again when its worker is killed: the time that the outcome needs to
	// reach the server. 0 is 20ms.
	Window time.Duration
	// MaxRepeats is how many handlers per kill may have run again after their end. 0: as many as a worker ends in 5ms, at least 2,
	// and as many as it has handlers for the root of the kills.
	MaxRepeats float64
	// Flat asks that memory, goroutines and consumers do not grow.
	Flat bool
}

// DefaultConcurrency is how many handlers each worker needs to carry a rate: half as many more than just enough, rounded up
// to a multiple of 16.
func DefaultConcurrency(rate float64, handler time.Duration, workers int) int {
	if rate <= 0 {
		return 64
	}
	need := 1.5 * rate * handler.Seconds() / float64(max(workers, 1))
	return 16 * max(1, int(math.Ceil(need/16)))
}

// The library's defaults: the budget of lost leases, and handlers at once.
const (
	defaultMaxLost     = 5
	defaultConcurrency = 10
)

func (o *Options) maxLost() int {
	if o.MaxLostLeases == 0 {
		return defaultMaxLost
	}
	return o.MaxLostLeases
}

// stopFor is how long a worker stands still.
func (o *Options) stopFor() time.Duration { return o.Visibility * 3 / 2 }

// held is how many messages a worker may hold at once: what its handlers have, and what it has read ahead.
func (o *Options) held() int {
	ahead := o.handlers()
	if o.Prefetch != 0 {
		ahead = max(o.Prefetch, 0) * o.Groups
	}
	return o.handlers() + ahead
}

// handlers is how many a worker runs at once.
func (o *Options) handlers() int {
	if o.Concurrency == 0 {
		return defaultConcurrency * o.Groups
	}
	return o.Concurrency * o.Groups
}

func (o *Options) server() (resp.Options, error) { return resp.ParseURL(o.URL) }
