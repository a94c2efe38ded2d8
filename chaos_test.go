package xstreamq_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

const (
	chaosMessages = 20000
	chaosKills    = 50
	chaosWorkers  = 4
	chaosRetries  = 3
)

// chaosFails says how often a message fails: one in 40 always, as many twice.
func chaosFails(n int) int {
	switch n % 40 {
	case 0:
		return 1 << 30
	case 20:
		return 2
	}
	return 0
}

var _ = func() bool {
	processes["chaos-worker"] = chaosWorker
	return true
}()

// chaosWorker is a worker process: it notes what it has handled in a file, before the message is acknowledged.
func chaosWorker(args []string) int {
	url, prefix, journal := args[0], args[1], args[2]
	file, err := os.OpenFile(journal, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	c, err := xstreamq.Open(url, xstreamq.Config{KeyPrefix: prefix, CompactEvery: 500 * time.Millisecond})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	q, err := xstreamq.NewQueue[int](c, faultQueue)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	_, err = q.Subscribe(faultGroup, func(_ context.Context, m *xstreamq.Message[int]) error {
		time.Sleep(rand.N(10 * time.Millisecond)) // the work
		if m.Retries < chaosFails(m.Body) {
			return errors.New("failed")
		}
		_, err := file.WriteString(chaosLine(m.Body, m.LostLeases))
		return err
	}, xstreamq.SubscribeOptions{
		VisibilityTimeout: 2 * time.Second, Concurrency: 8, MaxRetries: chaosRetries, Backoff: faultQuick,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := c.Run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// chaosLine is one line of the journal; all are of one length, and each is written in one piece.
func chaosLine(n, lost int) string { return fmt.Sprintf("%06d %d\n", n, min(lost, 9)) }

const chaosLineLen = len("000000 0\n")

// chaosJournal reads the file that the workers write.
type chaosJournal struct{ path string }

func (j chaosJournal) len(t *testing.T) int {
	t.Helper()
	info, err := os.Stat(j.path)
	if err != nil {
		return 0
	}
	return int(info.Size()) / chaosLineLen
}

// read returns how often each message was handled, and how many of them after a lost lease.
func (j chaosJournal) read(t *testing.T) (handled map[int]int, recovered int) {
	t.Helper()
	text, err := os.ReadFile(j.path)
	if err != nil {
		t.Fatal(err)
	}
	handled = map[int]int{}
	for line := range bytes.Lines(text) {
		if len(line) < chaosLineLen {
			break // just being written
		}
		n, err := strconv.Atoi(string(line[:6]))
		if err != nil {
			t.Fatalf("a line of the journal is %q", line)
		}
		handled[n]++
		if line[7] != '0' {
			recovered++
		}
	}
	return handled, recovered
}

// P1, P5: kill -9 of workers at 50 random moments during 20,000 messages of which 5 % fail: nothing is lost, nothing is in two places,
// no healthy message becomes a dead letter. Not parallel: four workers, one of them always starting, keep two cores busy.
func TestWorkersKilledAtRandomMoments(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: kill -9 of workers takes half a minute, and -short was asked for")
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	prefix := redistest.Prefix(t)
	rig := &faultRig{
		t: t, url: redistest.URL(t), prefix: prefix, keys: keys.ForGroup(prefix, faultQueue, faultGroup),
		redis: redistest.Client(t), log: newFaultLog(), runs: newFaultRuns(),
	}
	c, _ := rig.client()
	q, err := xstreamq.NewQueue[int](c, faultQueue)
	if err != nil {
		t.Fatal(err)
	}
	journal := chaosJournal{filepath.Join(t.TempDir(), "journal")}
	ids := map[string]int{}
	publish := func(n int) {
		batch := make([]xstreamq.Outgoing[int], n)
		for i := range batch {
			batch[i].Body = len(ids) + i
		}
		for i, res := range q.PublishBatch(t.Context(), batch) {
			if res.Err != nil {
				t.Fatal(res.Err)
			}
			ids[res.ID] = batch[i].Body
		}
	}
	publish(chaosMessages / 2)

	var workers []*process
	start := func() { workers = append(workers, spawn(t, "chaos-worker", rig.url, prefix, journal.path)) }
	for range chaosWorkers {
		start()
	}
	moments := make([]int, chaosKills)
	for i := range moments {
		moments[i] = 100 + rnd.IntN(chaosMessages*9/10)
	}
	slices.Sort(moments)
	for i, moment := range moments {
		// What was published so far may be less than the moment asks for.
		for moment > len(ids)*19/20 {
			publish(chaosMessages / 20)
		}
		redistest.WaitFor(t, faultPatience, "progress", func() bool { return journal.len(t) >= moment })
		victim := rnd.IntN(len(workers))
		if err := workers[victim].Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = workers[victim].Wait()
		workers = slices.Delete(workers, victim, victim+1)
		start()
		if i%5 == 0 {
			rig.conserved(ids, journal)
		}
	}
	publish(chaosMessages - len(ids))
	redistest.WaitFor(t, faultPatience, "the end of the work", func() bool { return journal.len(t) >= chaosMessages*39/40 })
	dead := rig.drained()
	rig.conserved(ids, journal)

	handled, recovered := journal.read(t)
	for id, n := range ids {
		d, isDead := dead[id]
		switch {
		case chaosFails(n) > chaosRetries && (d.reason != "failed" || d.rc != strconv.Itoa(chaosRetries+1)):
			t.Errorf("message %d always fails; its dead letter is %+v", n, d)
		case chaosFails(n) <= chaosRetries && (isDead || handled[n] == 0):
			t.Errorf("message %d: handled %d times, dead letter %+v", n, handled[n], d)
		}
	}
	if recovered < chaosKills/5 {
		t.Errorf("%d messages were recovered from lost leases: the kills hit nothing", recovered)
	}
	t.Logf("%d messages recovered, %d handled more than once", recovered, journal.len(t)-len(handled))
}

// conserved fails the test for each message that is in two places, or in none without having been handled.
func (r *faultRig) conserved(ids map[string]int, journal chaosJournal) {
	r.t.Helper()
	places := r.places()
	handled, _ := journal.read(r.t) // after the look at Redis: what was acknowledged by then is in it
	if twice := places.twice(); len(twice) > 0 {
		r.t.Errorf("%d messages are in two places, as %s", len(twice), twice[0])
	}
	lost := 0
	for id, n := range ids {
		if len(places.at[id]) == 0 && handled[n] == 0 {
			lost++
		}
	}
	if lost > 0 {
		r.t.Errorf("%d messages are nowhere, and were not handled", lost)
	}
	for id, d := range places.dead {
		if chaosFails(ids[id]) <= chaosRetries {
			r.t.Errorf("message %d is healthy, and dead: %+v", ids[id], d)
		}
	}
}
