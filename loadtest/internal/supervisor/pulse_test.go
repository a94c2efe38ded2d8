package supervisor

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xstreamq/xstreamq/internal/redistest"
	"github.com/xstreamq/xstreamq/loadtest/internal/fault"
	"github.com/xstreamq/xstreamq/loadtest/internal/resp"
)

func TestPulseTellsPausesFromLateness(t *testing.T) {
	t.Parallel()
	type step struct{ sleep, answer time.Duration }
	for _, row := range []struct {
		step step
		want []fault.Kind
	}{
		{step{beat, time.Millisecond}, nil},
		{step{beat, late - 1}, nil},
		{step{beat, late}, []fault.Kind{fault.Late}},
		{step{beat + late, 0}, []fault.Kind{fault.Late}},
		{step{beat, 6 * time.Second}, []fault.Kind{fault.Late}},
		{step{beat + pause, 0}, []fault.Kind{fault.Pause, fault.Late}},
	} {
		var p Pulse
		at := time.Now()
		p.note(at, at.Add(row.step.sleep), at.Add(row.step.sleep+row.step.answer))
		var got []fault.Kind
		for _, e := range p.Events() {
			got = append(got, e.Kind)
		}
		if diff := cmp.Diff(row.want, got); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", row.step, diff)
		}
	}
}

// A server that does not answer is seen, and one that was away is asked again.
func TestPulseSeesAServerThatIsLate(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	proxy := redistest.NewProxy(t, server.Addr())
	o, err := resp.ParseURL(proxy.URL())
	if err != nil {
		t.Fatal(err)
	}
	p := StartPulse(o)
	defer p.Stop()
	longest := func() (most time.Duration) {
		for _, e := range p.Events() {
			most = max(most, e.To.Sub(e.From))
		}
		return most
	}
	proxy.Refuse()
	for _, d := range []time.Duration{300 * time.Millisecond, 900 * time.Millisecond} {
		proxy.Delay(d)
		redistest.WaitFor(t, patience, "a late answer", func() bool { return longest() >= d })
	}
}
