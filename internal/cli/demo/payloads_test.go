package demo

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPayloads(t *testing.T) {
	t.Parallel()
	events, err := loadPayloads()
	if err != nil {
		t.Fatal(err)
	}
	byEvent := map[string]int{}
	for i, e := range events {
		byEvent[e.Event]++
		if err := e.Validate(); err != nil {
			t.Errorf("payload %d: %v", i+1, err)
		}
	}
	if len(events) != 329 || len(byEvent) != 58 {
		t.Errorf("%d payloads of %d events, want 329 of 58", len(events), len(byEvent))
	}
	for _, g := range groups {
		if byEvent[g.flaky] == 0 || byEvent[g.poison] == 0 || g.flaky == g.poison {
			t.Errorf("group %s has no events to fail on: %q %d, %q %d", g.name, g.flaky, byEvent[g.flaky], g.poison, byEvent[g.poison])
		}
	}
}

// TestHandlers plays what handlers do with one event of each kind until it ends.
func TestHandlers(t *testing.T) {
	t.Parallel()
	g := groups[0]
	got := map[string]int{}
	for _, event := range []string{"push", g.flaky, g.poison} {
		for retries := 0; retries <= maxRetries && g.fail(event, retries) != nil; retries++ {
			got[event]++
		}
	}
	if diff := cmp.Diff(map[string]int{g.flaky: 2, g.poison: maxRetries + 1}, got); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
}
