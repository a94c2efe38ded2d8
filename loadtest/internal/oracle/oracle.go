package oracle

import (
	"context"
	"fmt"
	"time"

	"github.com/xstreamq/xstreamq/loadtest/internal/fault"
	"github.com/xstreamq/xstreamq/loadtest/internal/journal"
	"github.com/xstreamq/xstreamq/loadtest/internal/message"
	"github.com/xstreamq/xstreamq/loadtest/internal/producer"
	"github.com/xstreamq/xstreamq/loadtest/internal/report"
	"github.com/xstreamq/xstreamq/loadtest/internal/resp"
)

// MaxRetries is the most that a run may allow: the oracle keeps a bit for each attempt of a message.
const MaxRetries = 14

// Options say what was run and where its traces are.
type Options struct {
	// Server and Keys say where the messages are. No worker may be running.
	Server resp.Options
	Keys   Keys
	// Groups is how many groups there are.
	Groups int
	// Messages is how many were to be published.
	Messages int
	// Plan says which handlers failed; MaxLostLeases is the budget of lost leases, Lease how long one is.
	Plan          message.Plan
	MaxLostLeases int
	Lease         time.Duration
	// Workers is how many there are at once, and Held how many messages each may hold at once, of all groups: so many may run again,
	// or be lost, for each fault.
	Workers, Held int
	// Journal is the directory of the journals, AckFile the producer's file of outcomes.
	Journal, AckFile string
	// Faults are what was done to the processes.
	Faults []fault.Event
	// Window is how long before its worker's kill a handler may have ended and its message come again all the same: the time
	// that the outcome needs to reach the server, when neither that nor the worker is late. 0 means 20ms.
	Window time.Duration
	// Drained says that the run waited until nothing was left, so that only dead letters may be.
	Drained bool
}

const defaultWindow = 20 * time.Millisecond

// Verdict is what the oracle found.
type Verdict struct {
	Checks  []report.Check
	Counts  []report.Count
	Tables  []report.Table
	Latency []report.Latency
	// Repeated is how many handler runs were repeated after a kill, per kill.
	RepeatedPerKill float64
}

// Held says whether every check held.
func (v Verdict) Held() bool {
	for _, c := range v.Checks {
		if !c.Held {
			return false
		}
	}
	return true
}

// Judge reads all traces. An error means that it could not, and says nothing of the promises.
func Judge(ctx context.Context, o Options) (Verdict, error) {
	if o.Plan.MaxRetries > MaxRetries {
		return Verdict{}, fmt.Errorf("the oracle follows at most %d retries, not %d", MaxRetries, o.Plan.MaxRetries)
	}
	if o.Window == 0 {
		o.Window = defaultWindow
	}
	j := newJudge(o)
	if err := producer.ReadAcks(o.AckFile, j.ack); err != nil {
		return Verdict{}, err
	}
	if err := journal.ReadAll(o.Journal, j.record); err != nil {
		return Verdict{}, err
	}
	if err := j.histories(); err != nil {
		return Verdict{}, err
	}
	conn, err := resp.Dial(ctx, o.Server)
	if err != nil {
		return Verdict{}, fmt.Errorf("read the places of the messages: %w", err)
	}
	defer conn.Close()
	p := places{conn: conn, keys: o.Keys, visit: j.place}
	if err := p.read(o.Groups); err != nil {
		return Verdict{}, err
	}
	j.conserve()
	return j.verdict(), nil
}

// problems are offences of one kind: how many, and the first few.
type problems struct {
	n        int64
	examples []string
}

const maxExamples = 10

func (p *problems) add(format string, args ...any) {
	p.n++
	if len(p.examples) < maxExamples {
		p.examples = append(p.examples, fmt.Sprintf(format, args...))
	}
}
