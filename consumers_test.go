package xstreamq_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// A consumer is one name, on the queue and on the retry stream together; its name says how long its leases are.
func TestConsumers(t *testing.T) {
	t.Parallel()
	r := newInspectRig(t)
	r.run(inspectEverywhere + `
		XGROUP CREATECONSUMER @queue g plain
		XGROUP CREATECONSUMER @queue g none~0
		XGROUP CREATECONSUMER @retry g-retry x~1x
		XGROUP CREATECONSUMER @retry g-retry "\xff~99999999999999999999"`)
	want := []xstreamq.Consumer{
		{Name: "a~30000", Pending: 2, Lease: 30 * time.Second, Live: true},
		{Name: "b~100", Pending: 1, Lease: 100 * time.Millisecond, Live: true},
		{Name: "none~0", Live: true},
		{Name: "plain", Live: true},
		{Name: "x~1x", Live: true},
		{Name: "\xff~99999999999999999999", Live: true},
	}
	got, err := r.client.Consumers(r.ctx, "q", "g")
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(xstreamq.Consumer{}, "Idle")); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
}

// An idle worker is live: it gives a sign of life every few seconds, on every version of Redis. One that has stopped is not listed.
func TestConsumersOfAnIdleWorker(t *testing.T) {
	t.Parallel()
	r := newInspectRig(t)
	q := stopQueue(t, r.client, "q")
	if _, err := q.Subscribe("g", stopNothing, xstreamq.SubscribeOptions{VisibilityTimeout: time.Minute}); err != nil {
		t.Fatal(err)
	}
	stopStart(t, r.client)
	var idle time.Duration
	redistest.WaitFor(t, 30*time.Second, "a second sign of life", func() bool {
		found, err := r.client.Consumers(r.ctx, "q", "g")
		if err != nil || len(found) > 1 {
			t.Fatalf("%+v, %v", found, err)
		}
		if len(found) == 0 {
			return false // it has only just begun
		}
		before := idle
		idle = found[0].Idle
		if !found[0].Live || found[0].Lease != time.Minute {
			t.Errorf("%+v", found[0])
		}
		return before > time.Second && idle < before
	})
	if err := r.client.Stop(r.ctx); err != nil {
		t.Fatal(err)
	}
	if found, err := r.client.Consumers(r.ctx, "q", "g"); err != nil || len(found) != 0 {
		t.Errorf("after Stop: %+v, %v", found, err)
	}
}

// A worker that gave no sign of life within its lease and within 15s is not live. The embedded server's clock can be set.
func TestConsumersThatAreGone(t *testing.T) {
	t.Parallel()
	small := miniredis.RunT(t)
	begun := time.Now()
	small.SetTime(begun)
	r := newInspectRigAt(t, "redis://"+small.Addr(), "p:")
	r.run("XGROUP CREATE @queue g 0 MKSTREAM\nXGROUP CREATE @retry g-retry 0 MKSTREAM")
	limits := map[string]time.Duration{"a~1000": 15 * time.Second, "b~60000": time.Minute, "c~0": 15 * time.Second, "d": 15 * time.Second}
	for i, name := range slices.Sorted(maps.Keys(limits)) {
		id := fmt.Sprintf("%d-0", i+1)
		r.run("XADD @queue " + id + " body a\nXREADGROUP GROUP g " + name + " STREAMS @queue >\nXCLAIM @queue g " + name + " 0 " + id)
	}
	for _, after := range []time.Duration{14 * time.Second, 16 * time.Second, 59 * time.Second, 61 * time.Second} {
		small.SetTime(begun.Add(after))
		found, err := r.client.Consumers(r.ctx, "q", "g")
		if err != nil || len(found) != len(limits) {
			t.Fatalf("%+v, %v", found, err)
		}
		for _, c := range found {
			if want := after < limits[c.Name]; c.Live != want {
				t.Errorf("%s after %v: live %v", c.Name, after, c.Live)
			}
		}
	}
	// A sign of life on either stream counts.
	r.run("XADD @retry 1-0 body a\nXREADGROUP GROUP g-retry a~1000 STREAMS @retry >\nXCLAIM @retry g-retry a~1000 0 1-0")
	found, err := r.client.Consumers(r.ctx, "q", "g")
	if err != nil || !found[0].Live || found[0].Idle > time.Second || found[0].Pending != 2 {
		t.Errorf("%+v, %v", found, err)
	}
}

// Pending lists what is held, the queue's first, each by id.
func TestPending(t *testing.T) {
	t.Parallel()
	r := newInspectRig(t)
	r.run(inspectEverywhere + `
		XCLAIM @queue g a~30000 0 2-0 IDLE 500000 RETRYCOUNT 4 JUSTID
		XCLAIM @retry g-retry a~30000 0 11-0 RETRYCOUNT 0 JUSTID
		XDEL @queue 3-0`)
	want := []xstreamq.PendingMessage{
		{ID: "2-0", From: xstreamq.InQueue, Consumer: "a~30000", Idle: 500 * time.Second, Deliveries: 4},
		{ID: "3-0", From: xstreamq.InQueue, Consumer: "b~100", Deliveries: 1}, // its entry is gone
		{ID: "11-0", From: xstreamq.InRetry, Consumer: "a~30000", Deliveries: 0},
	}
	var got []xstreamq.PendingMessage
	for m, err := range r.client.Pending(r.ctx, "q", "g") {
		if err != nil {
			t.Fatal(err)
		}
		m.Idle = m.Idle.Truncate(100 * time.Second)
		got = append(got, m)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Long lists come in pages, each message once, wherever a page ends; a loop may stop anywhere.
func TestPendingPages(t *testing.T) {
	t.Parallel()
	for _, n := range []int{499, 500, 501, 1000, 1001} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			r := newInspectRig(t)
			// The ids of a page end where the first part of an id does, too.
			r.run(inspectTimes(n, "XADD @queue 7-%d body a") + "XADD @queue 18446744073709551615-18446744073709551615 body a\nXGROUP CREATE @queue g 0\n" +
				"XREADGROUP GROUP g c STREAMS @queue >\nXADD @retry 1-0 body a\nXGROUP CREATE @retry g-retry 0\nXREADGROUP GROUP g-retry c STREAMS @retry >")
			var ids []string
			for m, err := range r.client.Pending(r.ctx, "q", "g") {
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, m.ID)
			}
			if len(ids) != n+2 || ids[0] != "7-1" || ids[n-1] != fmt.Sprintf("7-%d", n) || ids[n+1] != "1-0" {
				t.Errorf("%d ids, the last ones %v", len(ids), ids[max(0, len(ids)-3):])
			}
			for m, err := range r.client.Pending(r.ctx, "q", "g") {
				if err != nil || m.ID != "7-1" {
					t.Errorf("%+v, %v", m, err)
				}
				break
			}
		})
	}
}
