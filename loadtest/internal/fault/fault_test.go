package fault

import (
	"bytes"
	"testing"
	"time"
)

var base = time.Unix(1796060000, 0)

func event(k Kind, run, from, to int) Event {
	return Event{Kind: k, Run: run, From: base.Add(time.Duration(from) * time.Second), To: base.Add(time.Duration(to) * time.Second)}
}

func TestLogFindsFaultsByWhatTheyHit(t *testing.T) {
	t.Parallel()
	l := NewLog([]Event{
		event(Outage, 0, 50, 52), event(Kill, 3, 10, 11), event(Stop, 4, 20, 23), event(Stop, 4, 30, 33), event(Pause, 0, 70, 75), event(Late, 0, 80, 83),
		event(Late, 0, 85, 86),
	})
	at := func(s int) time.Time { return base.Add(time.Duration(s) * time.Second) }
	for name, row := range map[string]struct{ got, want bool }{
		"a stop that lies inside":   {l.Stopped(4, at(19), at(24)), true},
		"a stop that ends as we go": {l.Stopped(4, at(23), at(24)), true},
		"a span inside a stop":      {l.Stopped(4, at(31), at(32)), true},
		"a span between two stops":  {l.Stopped(4, at(24), at(29)), false},
		"a stop of another":         {l.Stopped(3, at(19), at(24)), false},
		"an outage":                 {l.Down(at(51), at(90)), true},
		"no outage":                 {l.Down(at(53), at(90)), false},
		"a pause":                   {l.Paused(at(0), at(71)), true},
		"no pause":                  {l.Paused(at(0), at(69)), false},
		"something":                 {l.Any(at(0), at(10)), true},
		"nothing":                   {l.Any(at(12), at(19)), false},
		"a pause of somebody":       {l.Stopped(0, at(0), at(99)), false},
	} {
		if row.got != row.want {
			t.Errorf("%s: %v", name, row.got)
		}
	}
	if l.Any(at(80), at(90)) {
		t.Error("lateness is taken for a fault")
	}
	for _, row := range []struct{ from, to, want int }{{79, 90, 4}, {81, 82, 1}, {82, 85, 1}, {84, 84, 0}, {0, 79, 0}} {
		if got := l.Lateness(at(row.from), at(row.to)); got != time.Duration(row.want)*time.Second {
			t.Errorf("%+v: %v", row, got)
		}
	}
	if e, ok := l.Killed(3); !ok || !e.From.Equal(at(10)) {
		t.Errorf("the kill of run 3: %+v, %v", e, ok)
	}
	if e, ok := l.Killed(4); ok {
		t.Errorf("run 4 was not killed: %+v", e)
	}
	if l.Count(Stop) != 2 || l.Count(Kill) != 1 || l.Count(Outage) != 1 || l.Count(Pause) != 1 {
		t.Error("the faults are not counted right")
	}
}

func TestMostInASpan(t *testing.T) {
	t.Parallel()
	var events []Event
	for _, s := range []int{50, 0, 1, 2, 10, 11, 12, 13, 14, 90} {
		events = append(events, event(Kill, s+1, s, s))
	}
	l := NewLog(append(events, event(Stop, 1, 10, 10)))
	for span, want := range map[time.Duration]int{0: 1, 2 * time.Second: 3, 4 * time.Second: 5, 14 * time.Second: 8, time.Hour: 10} {
		if got := l.Most(Kill, span); got != want {
			t.Errorf("%d kills within %v, want %d", got, span, want)
		}
	}
	if got := l.Most(Outage, time.Hour); got != 0 {
		t.Errorf("%d outages", got)
	}
}

func TestWrite(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := Write(&b, []Event{event(Kill, 7, 0, 1), event(Outage, 0, 2, 3)}); err != nil {
		t.Fatal(err)
	}
	const want = "2026-11-30T17:33:20.000000Z 2026-11-30T17:33:21.000000Z kill 7\n" +
		"2026-11-30T17:33:22.000000Z 2026-11-30T17:33:23.000000Z outage 0\n"
	if b.String() != want {
		t.Errorf("written is\n%s", b.String())
	}
}
