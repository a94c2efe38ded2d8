package worker

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
	"github.com/xstreamq/xstreamq/loadtest/internal/journal"
	"github.com/xstreamq/xstreamq/loadtest/internal/message"
)

func TestMain(m *testing.M) { redistest.Main(m) }

const patience = 60 * time.Second

// A process does what its first line of input says, writes to its journal what each handler did, tells its status, and ends in
// good order with its input.
func TestProcess(t *testing.T) {
	t.Parallel()
	o := Options{
		URL: redistest.URL(t), KeyPrefix: redistest.Prefix(t), Queue: "q", Groups: 2, Concurrency: 4, Visibility: time.Second,
		Backoff: 10 * time.Millisecond, Plan: message.Plan{Seed: 3, Rate: 0.4, MaxRetries: 1}, Journal: t.TempDir(), Run: 9,
	}
	const messages = 20
	client := redistest.Client(t)
	for seq := range messages {
		body := message.AppendBody(nil, seq, time.Unix(5, 6), message.MinBody)
		add := client.B().Xadd().Key(o.KeyPrefix+"{q}").Id("*").FieldValue().FieldValue("body", string(body)).Build()
		if err := client.Do(t.Context(), add).Error(); err != nil {
			t.Fatal(err)
		}
	}
	want := map[[3]int]journal.Kind{} // by group, message and failures
	for group := range o.Groups {
		for seq := range messages {
			for failures := range o.Plan.MaxRetries + 1 {
				if !o.Plan.Fails(group, seq, failures) {
					want[[3]int{group, seq, failures}] = journal.OK
					break
				}
				want[[3]int{group, seq, failures}] = journal.Failed
			}
		}
	}
	input, tellInput := io.Pipe()
	output, status := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- Process(input, status, t.Output()) }()
	if err := json.NewEncoder(tellInput).Encode(o); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(output).ReadBytes('\n')
	var s Status
	if err != nil || json.Unmarshal(line, &s) != nil || s.Goroutines == 0 || s.Heap == 0 {
		t.Errorf("the first status is %s, %v", line, err)
	}
	go func() { _, _ = io.Copy(io.Discard, output) }() // ends with the pipe
	starts, got := 0, map[[3]int]journal.Kind{}
	follower := journal.Follow(o.Journal)
	follower.Each = func(r *journal.Record) {
		if r.Run != 9 || r.Sent != time.Unix(5, 6).UnixNano() || r.Original.Ms == 0 || r.Entry.Ms == 0 || r.At == 0 {
			t.Errorf("a record is %+v", r)
		}
		if r.Kind == journal.Start {
			starts++
			return
		}
		got[[3]int{int(r.Group), r.Seq, int(r.Failures)}] = r.Kind
	}
	redistest.WaitFor(t, patience, "all handlers", func() bool {
		totals, err := follower.Poll()
		return err == nil && totals.OK+totals.Failed >= int64(len(want))
	})
	if err := tellInput.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	_ = status.Close() // so that the goroutine above ends
	if diff := cmp.Diff(want, got); diff != "" || starts != len(want) {
		t.Errorf("%d handlers began, %d were wanted; ends (-want +got):\n%s", starts, len(want), diff)
	}
}

// A handler that is told to end has not failed: the plan alone says what fails.
func TestCancelledHandlerIsNoFailure(t *testing.T) {
	t.Parallel()
	notes, err := journal.Create(t.TempDir(), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer notes.Close()
	h := handler{opts: &Options{Handler: time.Hour}, notes: notes}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(xstreamq.ErrLeaseLost)
	var m xstreamq.Message[[]byte]
	m.ID, m.OriginalID, m.Body = "5-0", "4-0", message.AppendBody(nil, 1, time.Now(), 64)
	if err := h.handle(ctx, &m); !errors.Is(err, xstreamq.ErrLeaseLost) || err.Error() != xstreamq.Release(xstreamq.ErrLeaseLost).Error() {
		t.Errorf("the handler returned %v", err)
	}
}

func TestProcessRefusesBadOptions(t *testing.T) {
	t.Parallel()
	for name, input := range map[string]string{
		"no input": "", "no JSON": "x\n", "no journal": `{"Journal": "/does/not/exist"}` + "\n",
	} {
		if err := Process(strings.NewReader(input), io.Discard, io.Discard); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	o := Options{URL: "http://localhost", Journal: t.TempDir(), Run: 1}
	if err := Run(t.Context(), o, io.Discard); !errors.Is(err, xstreamq.ErrInvalidConfig) {
		t.Errorf("a URL of another scheme: %v", err)
	}
}
