package cli

import (
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/xstreamq/xstreamq"
)

// deliveryRow is one delivery for --json. It is printed before its verdict is written to Redis.
type deliveryRow struct {
	ID         string `json:"id"`
	OriginalID string `json:"original_id"`
	Attempt    int    `json:"attempt"`
	Verdict    fate   `json:"verdict"`
	ExitCode   *int   `json:"exit_code"` // null where a signal ended the command, or it did not run
	DurationMS int64  `json:"duration_ms"`
	Error      string `json:"error,omitempty"`
}

// reporter tells of deliveries: with --json on the standard output, else what went wrong in the log. It counts what was written.
type reporter struct {
	app *app
	log *slog.Logger

	mu       sync.Mutex
	released int // verdicts to give a message back
	judged   int // all others
	written  map[xstreamq.Outcome]int
	swept    int // dead letters made without a handler: of vanished workers
}

// observer counts for the summary.
func (r *reporter) observer() xstreamq.Observer {
	return xstreamq.Observer{
		Handled: func(h xstreamq.Handled) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if h.Outcome == xstreamq.Released {
				r.released++
			} else {
				r.judged++
			}
		},
		Settled: func(s xstreamq.Settled) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.written[s.Outcome] += s.Count
		},
		Swept: func(s xstreamq.Swept) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.swept += len(s.Dead)
		},
	}
}

// tell reports one delivery; e is nil where the command could not be started. The error is that of the standard output.
func (r *reporter) tell(m *xstreamq.Delivery, verdict fate, e *exit, took time.Duration, why error) error {
	row := deliveryRow{
		ID: m.ID, OriginalID: m.OriginalID, Attempt: m.Attempt, Verdict: verdict, DurationMS: took.Milliseconds(),
	}
	if e != nil && e.state.Exited() {
		code := e.state.ExitCode()
		row.ExitCode = &code
	}
	if why != nil {
		row.Error = strings.ToValidUTF8(why.Error(), "?")
	}
	return r.print(row)
}

// print tells of one delivery.
func (r *reporter) print(row deliveryRow) error {
	if r.app.json {
		return r.app.print(row)
	}
	if row.Verdict != fateAck {
		r.log.Warn("message not acked",
			"id", row.OriginalID, "attempt", row.Attempt, "verdict", string(row.Verdict), "error", row.Error)
	}
	return nil
}

// unwritten is how many verdicts have not been written. What no command had begun is given back as well, and not told apart from
// what commands gave back: of those, some may be missing here.
func (r *reporter) unwritten() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	settled := 0
	for _, o := range []xstreamq.Outcome{
		xstreamq.Acked, xstreamq.Retried, xstreamq.Dead, xstreamq.Late, xstreamq.Lost, xstreamq.Unknown,
	} {
		settled += r.written[o]
	}
	return max(0, r.judged-settled) + max(0, r.released-r.written[xstreamq.Released])
}

// summary is how many outcomes of each kind were written, for the log.
func (r *reporter) summary() []any {
	unwritten := r.unwritten()
	r.mu.Lock()
	defer r.mu.Unlock()
	var attrs []any
	for _, o := range []xstreamq.Outcome{xstreamq.Acked, xstreamq.Retried, xstreamq.Dead, xstreamq.Released} {
		n := r.written[o]
		if o == xstreamq.Dead {
			n += r.swept
		}
		attrs = append(attrs, slog.Int(string(o), n))
	}
	for _, o := range []xstreamq.Outcome{xstreamq.Late, xstreamq.Lost, xstreamq.Unknown, xstreamq.Skipped} {
		if n := r.written[o]; n > 0 {
			attrs = append(attrs, slog.Int(string(o), n))
		}
	}
	if unwritten > 0 {
		attrs = append(attrs, slog.Int("unwritten", unwritten))
	}
	return attrs
}
