package oracle

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq/internal/redistest"
	"github.com/xstreamq/xstreamq/loadtest/internal/fault"
	"github.com/xstreamq/xstreamq/loadtest/internal/journal"
	"github.com/xstreamq/xstreamq/loadtest/internal/message"
	"github.com/xstreamq/xstreamq/loadtest/internal/producer"
	"github.com/xstreamq/xstreamq/loadtest/internal/resp"
)

// story is a made-up run: what the producer, the handlers and Redis say, as far as the oracle looks at it.
type story struct {
	t       *testing.T
	opts    Options
	conn    *resp.Conn
	began   time.Time
	acks    []producer.Ack
	records map[uint32][]journal.Record
}

// The plan of all stories: two retries, and a third of the handlers fail, so that among the first few messages there is one of
// each fate.
var storyPlan = message.Plan{Seed: 7, Rate: 0.35, MaxRetries: 2}

const storyMessages = 40

func newStory(t *testing.T) *story {
	t.Helper()
	prefix := redistest.Prefix(t)
	server, err := resp.ParseURL(redistest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := resp.Dial(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	dir := t.TempDir()
	s := &story{t: t, conn: conn, began: time.Unix(1796060000, 0), records: map[uint32][]journal.Record{}}
	s.opts = Options{
		Server: server, Keys: Keys{Prefix: prefix, Queue: "q"}, Groups: 1, Messages: storyMessages, Plan: storyPlan, MaxLostLeases: 5,
		Lease: 2 * time.Second, Workers: 3, Held: 10, Journal: dir, AckFile: filepath.Join(dir, "outcomes"), Drained: true,
	}
	s.do("XGROUP", "CREATE", s.opts.Keys.stream(), message.Group(0), "0", "MKSTREAM")
	s.do("XGROUP", "CREATE", s.opts.Keys.retry(0), message.Group(0)+"-retry", "0", "MKSTREAM")
	return s
}

func (s *story) do(args ...string) resp.Value {
	s.t.Helper()
	v, err := s.conn.Do(args...)
	if err != nil {
		s.t.Fatalf("%s: %v", strings.Join(args, " "), err)
	}
	return v
}

// id is that of a message, and of its first entry.
func id(seq int) journal.ID { return journal.ID{Ms: 1796060000000 + uint64(seq), Seq: 1} }

func body(seq int) string { return string(message.AppendBody(nil, seq, time.Unix(1796060000, 0), 64)) }

// at is a time of the story.
func (s *story) at(d time.Duration) time.Time { return s.began.Add(d) }

// published adds the outcome of a publish.
func (s *story) published(seq int, status producer.Status) {
	a := producer.Ack{Seq: seq, Status: status}
	if status == producer.Acknowledged {
		a.Ms, a.N = id(seq).Ms, id(seq).Seq
	}
	s.acks = append(s.acks, a)
}

// ran adds a handler that began at a time and took 50ms; ends says whether it came to its end.
func (s *story) ran(run, seq, failures, lost int, begin time.Duration, ends bool) {
	r := journal.Record{
		Seq: seq, Kind: journal.Start, Run: uint32(run), Original: id(seq), Sent: s.began.UnixNano(), Failures: uint16(failures), Lost: uint16(lost),
		Entry: journal.ID{Ms: 1796060100000 + uint64(begin.Milliseconds()), Seq: uint32(seq)}, At: s.at(begin).UnixNano(),
	}
	s.records[r.Run] = append(s.records[r.Run], r)
	if !ends {
		return
	}
	r.Kind = journal.OK
	if s.opts.Plan.Fails(0, seq, failures) {
		r.Kind = journal.Failed
	}
	r.At = s.at(begin + 50*time.Millisecond).UnixNano()
	s.records[r.Run] = append(s.records[r.Run], r)
}

// beat adds beats of a run.
func (s *story) beat(run int, from, to, every time.Duration) {
	for at := from; at < to; at += every {
		r := journal.Record{Kind: journal.Beat, Run: uint32(run), At: s.at(at).UnixNano()}
		s.records[r.Run] = append(s.records[r.Run], r)
	}
}

// handled runs a message as the plan says, in one run, and puts the dead letter where there must be one.
func (s *story) handled(seq int) {
	for failures := 0; failures <= s.opts.Plan.MaxRetries; failures++ {
		s.ran(1, seq, failures, 0, time.Duration(seq)*time.Second+time.Duration(failures)*200*time.Millisecond, true)
		if !s.opts.Plan.Fails(0, seq, failures) {
			return
		}
	}
	s.dead(seq, "rc", "3", "reason", "failed", "oid", id(seq).String())
}

func (s *story) dead(seq int, fields ...string) {
	s.do(append([]string{"XADD", s.opts.Keys.dead(0), "*", "body", body(seq)}, append(fields, deadFields...)...)...)
}

// deadFields are those that all dead letters have.
var deadFields = []string{"err", message.Failure, "at", "1796060000009", "from", "1-1", "by", "c~1000"}

// onQueue puts the entry of a message on the queue; read says that the group's worker has it.
func (s *story) onQueue(seq int, read bool) {
	s.do("XADD", s.opts.Keys.stream(), id(seq).String(), "body", body(seq))
	if read {
		s.do("XREADGROUP", "GROUP", message.Group(0), "c~1000", "STREAMS", s.opts.Keys.stream(), ">")
	}
}

// onRetry puts a message on the retry stream; read says that a worker has it, done that it is acknowledged then.
func (s *story) onRetry(seq int, read, done bool) {
	entry := s.do("XADD", s.opts.Keys.retry(0), "*", "body", body(seq), "oid", id(seq).String(), "lc", "1").Text
	group := message.Group(0) + "-retry"
	if read {
		s.do("XREADGROUP", "GROUP", group, "c~1000", "STREAMS", s.opts.Keys.retry(0), ">")
	}
	if done {
		s.do("XACK", s.opts.Keys.retry(0), group, entry)
	}
}

// delayed puts a message into the group's sorted set.
func (s *story) delayed(seq int) {
	packed := ""
	for _, word := range []string{"body", body(seq), "oid", id(seq).String(), "rc", "1"} {
		packed += strconv.Itoa(len(word)) + ":" + word
	}
	s.do("ZADD", s.opts.Keys.delayed(0), "99999999999999", id(seq).String()+"\x00"+packed)
}

func (s *story) fault(k fault.Kind, run int, from, to time.Duration) {
	s.opts.Faults = append(s.opts.Faults, fault.Event{Kind: k, Run: run, From: s.at(from), To: s.at(to)})
}

// judge writes the files and asks the oracle.
func (s *story) judge() Verdict {
	s.t.Helper()
	if err := producer.WriteAcks(s.opts.AckFile, s.acks); err != nil {
		s.t.Fatal(err)
	}
	for run, records := range s.records {
		w, err := journal.Create(s.opts.Journal, int(run))
		if err != nil {
			s.t.Fatal(err)
		}
		for i := range records {
			if err := w.Write(&records[i]); err != nil {
				s.t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			s.t.Fatal(err)
		}
	}
	v, err := Judge(s.t.Context(), s.opts)
	if err != nil {
		s.t.Fatal(err)
	}
	return v
}

// pick returns a message whose fate is: so many failures, and then a success; 3 failures are the end of it.
func pick(failures int) int {
	for seq := range storyMessages {
		n := 0
		for n <= storyPlan.MaxRetries && storyPlan.Fails(0, seq, n) {
			n++
		}
		if n == failures {
			return seq
		}
	}
	panic(fmt.Sprintf("no message fails %d times", failures))
}

// all publishes every message, and has all but some handled.
func (s *story) all(but ...int) {
	for seq := range storyMessages {
		s.published(seq, producer.Acknowledged)
		excepted := false
		for _, b := range but {
			excepted = excepted || b == seq
		}
		if !excepted {
			s.handled(seq)
		}
	}
}
