package peer

import (
	"testing"
	"time"
)

func TestBodyRoundTrip(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 4, 5, 6, 7, 123456789, time.UTC)
	body := Body(at, 4_321)
	if len(body) != BodySize {
		t.Fatalf("%d bytes, want %d", len(body), BodySize)
	}
	nanos, seq, err := ParseBody(body)
	if err != nil || nanos != at.UnixNano() || seq != 4_321 {
		t.Errorf("got time %d, sequence number %d, error %v", nanos, seq, err)
	}
}

func TestParseBodyRefusesOthers(t *testing.T) {
	t.Parallel()
	good := string(Body(time.Now(), 1))
	for _, body := range []string{"", good[1:], good + "x", "x" + good[1:], good[:seqAt] + "x" + good[seqAt+1:]} {
		if _, _, err := ParseBody(body); err == nil {
			t.Errorf("%q was taken", body)
		}
	}
}

func TestTallyCountsAndTimes(t *testing.T) {
	t.Parallel()
	tally := newTally(3)
	tally.handle(Body(time.Now().Add(-time.Second), 0))
	tally.handle(Body(time.Now(), 2))
	tally.handle(Body(time.Now(), 7))
	e := tally.event()
	if e.Kind != Worked || e.Handled != 3 || e.Sum != 9 || e.First == 0 || e.Last < e.First {
		t.Errorf("got %+v", e)
	}
	if len(e.Latencies) != 3 || e.Latencies[0] < 1_000_000 || e.Latencies[0] > 60_000_000 || e.Latencies[1] != -1 || e.Latencies[2] < 0 {
		t.Errorf("latencies %v: want a second, none, and some", e.Latencies)
	}
	tally.handle([]byte("no body of ours"))
	if e := tally.event(); e.Kind != Failed || e.Error == "" {
		t.Errorf("got %+v after a body that is none of ours", e)
	}
}
