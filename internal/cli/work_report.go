package cli

import (
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/xstreamq/xstreamq"
)

// deliveryRow is one delivery for --json.
type deliveryRow struct {
	ID         string           `json:"id"`
	OriginalID string           `json:"original_id"`
	Attempt    int              `json:"attempt"`
	Outcome    xstreamq.Outcome `json:"outcome"`
	ExitCode   *int             `json:"exit_code"` // null where a signal ended the command, or it could not be started
	DurationMS int64            `json:"duration_ms"`
	Error      string           `json:"error,omitempty"`
}

// reporter tells what became of deliveries: with --json on the standard output, else what went wrong in the log.
type reporter struct {
	app *app
	log *slog.Logger

	mu     sync.Mutex
	counts map[xstreamq.Outcome]int
}

// tell reports one delivery; e is nil where the command could not be started. The error is that of the standard output.
func (r *reporter) tell(m *xstreamq.Delivery, outcome xstreamq.Outcome, e *exit, took time.Duration, why error) error {
	row := deliveryRow{
		ID: m.ID, OriginalID: m.OriginalID, Attempt: m.Attempt, Outcome: outcome, DurationMS: took.Milliseconds(),
	}
	if e != nil && e.state.Exited() {
		code := e.state.ExitCode()
		row.ExitCode = &code
	}
	if why != nil {
		row.Error = strings.ToValidUTF8(why.Error(), "?")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts[outcome]++
	if r.app.json {
		return r.app.print(row)
	}
	if outcome != xstreamq.Acked {
		r.log.Warn("message not acked", "id", m.OriginalID, "attempt", m.Attempt, "outcome", string(outcome), "error", row.Error)
	}
	return nil
}

// summary is how many deliveries ended which way, for the log.
func (r *reporter) summary() []any {
	r.mu.Lock()
	defer r.mu.Unlock()
	var attrs []any
	for _, o := range []xstreamq.Outcome{xstreamq.Acked, xstreamq.Retried, xstreamq.Dead, xstreamq.Released} {
		attrs = append(attrs, slog.Int(string(o), r.counts[o]))
	}
	if lost := r.counts[xstreamq.Lost]; lost > 0 {
		attrs = append(attrs, slog.Int(string(xstreamq.Lost), lost))
	}
	return attrs
}
