package supervisor

import (
	"testing"
	"time"

	"github.com/xstreamq/xstreamq/loadtest/internal/fault"
)

func TestPulseNotesPauses(t *testing.T) {
	t.Parallel()
	p := StartPulse()
	p.Stop()
	p.Stop()
	at := time.Now()
	for _, step := range []time.Duration{beat, beat + pause - 1, beat + pause, 6 * time.Second, beat} {
		p.beat(at, at.Add(step))
		at = at.Add(step)
	}
	p.beat(at, at.Round(0).Add(time.Hour)) // the monotonic clock stood still
	events := p.Events()
	if len(events) != 3 || events[1].Kind != fault.Pause || events[1].To.Sub(events[1].From) != 6*time.Second {
		t.Errorf("the pauses are %+v", events)
	}
}
