package xstreamq_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xstreamq/xstreamq"
)

var _ = func() bool {
	processes["dead-redriver"] = runDeadRedriver
	return true
}()

// runDeadRedriver redrives all and writes a line after each call to Redis. Its arguments are a URL and a prefix.
func runDeadRedriver(args []string) int {
	c, err := xstreamq.Open(args[0], xstreamq.Config{KeyPrefix: args[1]})
	if err != nil {
		fmt.Fprintln(os.Stderr, "redriver:", err)
		return 1
	}
	defer func() { _ = c.Close() }()
	_, err = c.RedriveAll(context.Background(), "q", "g", xstreamq.RedriveAllOptions{Progress: func(_, redriven int) {
		fmt.Fprintln(os.Stdout, redriven)
	}})
	if err != nil {
		fmt.Fprintln(os.Stderr, "redriver:", err)
		return 1
	}
	return 0
}

// A process that redrives 5,000 is killed with kill -9 again and again: at any moment each message is in one place, and another
// goes on where it was.
func TestRedriveAllKilledInTheMiddle(t *testing.T) {
	t.Parallel()
	r := newDeadRig(t)
	const n = 5000
	r.bury(1, n)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	everything := deadNumbers(1, n, 1)
	for round := range 5 {
		p := spawn(t, "dead-redriver", r.url, r.prefix)
		lines := random.IntN(30)
		for p.Lines.Scan() && lines > 0 {
			lines--
		}
		time.Sleep(time.Duration(random.IntN(2000)) * time.Microsecond) // into the middle of a call
		p.kill()
		dead, moved := r.originals(r.keys.DLQ), r.originals(r.keys.Retry)
		both := slices.Sorted(slices.Values(append(slices.Clone(dead), moved...)))
		if diff := cmp.Diff(everything, both); diff != "" {
			t.Fatalf("round %d, -want +got:\n%s", round, diff)
		}
		t.Logf("killed with %d redriven", len(moved))
		if len(moved) == 0 || len(dead) == 0 {
			break
		}
	}
	left := r.len(r.keys.DLQ)
	got, err := r.client.RedriveAll(t.Context(), "q", "g", xstreamq.RedriveAllOptions{})
	if err != nil || len(got.Redriven) != left {
		t.Errorf("%d redriven of %s, %v", len(got.Redriven), strconv.Itoa(left), err)
	}
	if diff := cmp.Diff(everything, r.originals(r.keys.Retry)); diff != "" || r.len(r.keys.DLQ) != 0 {
		t.Errorf("to be retried: -want +got:\n%s", diff)
	}
}
