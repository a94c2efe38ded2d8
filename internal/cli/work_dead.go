package cli

import (
	"context"
	"fmt"

	"github.com/xstreamq/xstreamq"
)

// uncommanded says why a dead letter was made without a run of the command; empty: a run judged it, and was reported.
func uncommanded(d *xstreamq.DeadMessage) string {
	switch d.Reason {
	case xstreamq.NoBody:
		return `the entry has no field "body", so there is nothing to run the command with`
	case xstreamq.BodyLost:
		return "the entry was deleted while it was pending"
	case xstreamq.LostLease:
		return fmt.Sprintf("%s vanished with it", plural(d.LostLeases, "worker", "workers"))
	case xstreamq.Undecodable:
		return d.Error
	case xstreamq.Failed, xstreamq.Rejected:
	}
	return ""
}

// buried reports the dead letters that no run of the command has to do with: else they would die without a word.
func (w *worker) buried(_ context.Context, d xstreamq.DeadMessage) {
	why := uncommanded(&d)
	if why == "" {
		return
	}
	attempt := d.Attempts()
	if d.Reason == xstreamq.NoBody {
		attempt++ // this delivery was neither a failure nor a lost lease
	}
	row := deliveryRow{
		ID: d.From, OriginalID: d.OriginalID, Verdict: fateDead, Error: string(d.Reason) + ": " + why,
		Attempt: max(1, attempt), // an entry that is gone does not say what it had spent
	}
	if err := w.report.print(row); err != nil {
		w.end(fmt.Errorf("what became of %s cannot be printed: %w", d.OriginalID, err))
	}
}
