package xstreamq_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// deadRig is a leaseRig with a client, for dead letters that no worker has made.
type deadRig struct {
	*leaseRig
	client *xstreamq.Client
}

func newDeadRig(t *testing.T) *deadRig {
	t.Helper()
	return deadRigAt(t, redistest.URL(t), redistest.Prefix(t))
}

func deadRigAt(t *testing.T, url, prefix string) *deadRig {
	t.Helper()
	r := leaseRigAt(t, url, prefix)
	c, _ := r.open(xstreamq.Config{})
	return &deadRig{r, c}
}

// deadWord is what dead letters say besides their body and id.
var deadWord = []string{"rc", "4", "lc", "1", "err", "boom", "reason", "failed", "at", "1700000000000", "from", "8-0", "by", "gone~30000"}

// bury writes dead letters <first>-0 to <last>-0 of messages <first>-1 to <last>-1, in the form that the engine gives them.
func (r *deadRig) bury(first, last int) (ids []string) {
	r.t.Helper()
	const page = 5000
	for at := first; at <= last; at += page {
		var cmds rueidis.Commands
		for n := at; n <= min(last, at+page-1); n++ {
			id := strconv.Itoa(n)
			ids = append(ids, id+"-0")
			cmds = append(cmds, r.redis.B().Arbitrary("XADD").Keys(r.keys.DLQ).
				Args(id+"-0", "body", fmt.Sprintf(`{"n":%d}`, n), "oid", id+"-1").Args(deadWord...).Build())
		}
		r.send(cmds)
	}
	return ids
}

func (r *deadRig) send(cmds rueidis.Commands) {
	r.t.Helper()
	for _, reply := range r.redis.DoMulti(r.t.Context(), cmds...) {
		if err := reply.Error(); err != nil {
			r.t.Fatal(err)
		}
	}
}

// buryFields writes one dead letter as it stands.
func (r *deadRig) buryFields(id string, fields ...string) string {
	r.t.Helper()
	m := r.ask(append([]string{"XADD", r.keys.DLQ, id}, fields...)...)
	id, err := m.ToString()
	if err != nil {
		r.t.Fatal(err)
	}
	return id
}

// deadIDs collects what DeadLetters shows, and the error that ended it.
func (r *deadRig) deadIDs(f xstreamq.DeadFilter) (ids []string, err error) {
	for d, err := range r.client.DeadLetters(r.t.Context(), "q", "g", f) {
		if err != nil {
			return ids, err
		}
		ids = append(ids, d.ID)
	}
	return ids, nil
}

func (r *deadRig) len(key string) int {
	r.t.Helper()
	m := r.ask("XLEN", key)
	n, err := m.AsInt64()
	if err != nil {
		r.t.Fatal(err)
	}
	return int(n)
}

// raw returns the fields of all entries of a stream, in order and with what is there twice.
func (r *deadRig) raw(stream string) [][]string {
	r.t.Helper()
	m := r.ask("XRANGE", stream, "-", "+")
	entries, err := m.ToArray()
	if err != nil {
		r.t.Fatal(err)
	}
	out := make([][]string, len(entries))
	for i := range entries {
		pair, _ := entries[i].ToArray()
		if out[i], err = pair[1].AsStrSlice(); err != nil {
			r.t.Fatal(err)
		}
	}
	return out
}

// originals returns the original ids on a stream, sorted.
func (r *deadRig) originals(stream string) []string {
	r.t.Helper()
	var ids []string
	for _, e := range r.entries(stream) {
		ids = append(ids, e.Fields["oid"])
	}
	slices.Sort(ids)
	return ids
}

// deadNumbers returns "<first>-<seq>" to "<last>-<seq>", sorted as text.
func deadNumbers(first, last, seq int) []string {
	var ids []string
	for n := first; n <= last; n++ {
		ids = append(ids, fmt.Sprintf("%d-%d", n, seq))
	}
	slices.Sort(ids)
	return ids
}
