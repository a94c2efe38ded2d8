package rsmqmigrate

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xstreamq/xstreamq/internal/redistest"
	"github.com/xstreamq/xstreamq/rsmq"
)

const strangeID = "a stranger's id, of any length"

// Messages arrive in RSMQ's order, delayed ones to the millisecond, with what RSMQ knew of them; those in flight and those without a body
// stay.
func TestMove(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, r *rig) {
		r.many(2)
		flying := r.receive(1, time.Hour)
		r.receive(1, time.Millisecond) // comes again, after those sent before
		r.many(250)
		r.send(0, "Grüße \x00 \r\n 😀", "")
		late := r.send(90*time.Minute+123*time.Millisecond, "late 1", "late 2")
		later := r.send(2*time.Hour+456*time.Millisecond, "later")
		soon := r.send(time.Second, "soon")
		r.do("ZADD", r.m.keys.Messages, "5.5", strangeID)
		r.do("HSET", r.m.keys.Hash, strangeID, "strange", strangeID+":rc", "7")
		r.do("ZADD", r.m.keys.Messages, "6", "no body")

		want := r.expected(append(append(slices.Clone(late), later...), soon...), flying[0].ID)
		survey, err := Survey(t.Context(), r.redis, r.q)
		if err != nil {
			t.Fatal(err)
		}
		got := r.move()
		for what, c := range map[string]Counts{"survey": survey, "move": got} {
			if c.NextIn <= 0 || c.NextIn > time.Hour {
				t.Errorf("%s: the next one in flight is visible in %s", what, c.NextIn)
			}
			c.NextIn = 0
			if diff := cmp.Diff(Counts{Visible: 254, Delayed: 4, InFlight: 1, NoBody: 1}, c); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
		}
		if diff := cmp.Diff(want, r.arrived()); diff != "" {
			t.Errorf("arrived (-want +got):\n%s", diff)
		}
		// A hash field each of the one in flight: its body, count and first receive.
		if messages, fields := r.left(); messages != 2 || fields != 3 {
			t.Errorf("%d messages are left, %d fields", messages, fields)
		}
		// When the one in flight is given up by its consumer, the next run takes it.
		if ok, err := r.from.ChangeMessageVisibility(t.Context(), r.q.Name, flying[0].ID, 0); !ok || err != nil {
			t.Fatal(ok, err)
		}
		if c := r.move(); c.Visible != 1 || c.InFlight != 0 || c.NextIn != 0 {
			t.Errorf("%+v", c)
		}
		last := r.arrived()[254]
		if last.RSMQ != flying[0].ID || last.RC != "1" || last.Body != flying[0].Body {
			t.Errorf("the one that was in flight arrived as %+v", last)
		}
	})
}

// expected is what should arrive, read from RSMQ: all but those in flight and without a body, in the order of delivery, the delayed ones
// last.
func (r *rig) expected(delayed []string, flying string) []moved {
	r.t.Helper()
	members, err := r.do("ZRANGE", r.m.keys.Messages, "0", "-1", "WITHSCORES").AsZScores()
	if err != nil {
		r.t.Fatal(err)
	}
	fields, err := r.do("HGETALL", r.m.keys.Hash).AsStrMap()
	if err != nil {
		r.t.Fatal(err)
	}
	var all []moved
	for _, m := range members {
		body, ok := fields[m.Member]
		if !ok || m.Member == flying {
			continue
		}
		want := moved{RSMQ: m.Member, Body: body, RC: fields[m.Member+":rc"]}
		if want.RC == "" {
			want.RC = "0"
		}
		if want.Sent = sentOf(m.Member); m.Member == strangeID {
			want.Sent = "0" // it begins with an a: 10 microseconds
		}
		if slices.Contains(delayed, m.Member) {
			want.Due = int64(m.Score)
		}
		all = append(all, want)
	}
	return all
}

// sentOf is the time that an id of RSMQ begins with, in ms.
func sentOf(id string) string {
	us, _ := strconv.ParseInt(id[:min(10, len(id))], 36, 64)
	return strconv.FormatInt(us/1000, 10)
}

// A survey changes nothing.
func TestSurvey(t *testing.T) {
	t.Parallel()
	r := newRig(t, redistest.Client(t), false)
	r.many(450)
	r.receive(3, time.Hour)
	before := r.dump()
	c, err := Survey(t.Context(), r.redis, r.q)
	c.NextIn = 0
	if diff := cmp.Diff(Counts{Visible: 447, InFlight: 3}, c); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if r.dump() != before {
		t.Error("the queues changed")
	}
	empty := r.q
	empty.Name = "nope"
	if c, err := Survey(t.Context(), r.redis, empty); err != nil || c != (Counts{}) {
		t.Errorf("no queue: %+v, %v", c, err)
	}
	if c, err := Move(t.Context(), r.redis, empty, nil); err != nil || c != (Counts{}) {
		t.Errorf("no queue: %+v, %v", c, err)
	}
}

// dump is what all keys hold.
func (r *rig) dump() string {
	r.t.Helper()
	var all []string
	k := r.m.keys
	for _, key := range []string{k.Hash, k.Messages, k.Queue, k.Delayed, k.Migrated} {
		text, _ := r.do("DUMP", key).ToString()
		all = append(all, text)
	}
	return strings.Join(all, "\n")
}

// 5,000 messages move while others are still sent: each arrives once, and progress counts them.
func TestMoveBesideSenders(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, r *rig) {
		ids := r.many(5000)
		var mu sync.Mutex
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() {
				for n := range 100 {
					delay := time.Duration(n%3) * time.Hour
					id, err := r.from.SendMessage(t.Context(), r.q.Name, fmt.Sprint(i, n), rsmq.SendOptions{Delay: &delay})
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					ids = append(ids, id)
					mu.Unlock()
				}
			})
		}
		var progress []int64
		r.m.progress = func(n int64) { progress = append(progress, n) }
		first := r.move()
		wg.Wait()
		r.m.progress = func(int64) {}
		second := r.move()
		if total := first.Moved() + second.Moved(); total != 5300 {
			t.Errorf("%d were moved", total)
		}
		if !slices.IsSorted(progress) || progress[len(progress)-1] != first.Moved() {
			t.Errorf("progress %v of %d", progress, first.Moved())
		}
		r.once(ids)
		if messages, fields := r.left(); messages+fields != 0 {
			t.Errorf("%d messages are left, %d fields", messages, fields)
		}
	})
}

// Two runs at once move each message once.
func TestMoveTwiceAtOnce(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, r *rig) {
		ids := append(r.many(3000), r.send(time.Hour, "a", "b", "c")...)
		var wg sync.WaitGroup
		var counts [2]Counts
		for i := range counts {
			wg.Go(func() {
				m := *r.m
				var err error
				if counts[i], err = m.move(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		r.once(ids)
		if total := counts[0].Moved() + counts[1].Moved(); total != 3003 {
			t.Errorf("%+v and %+v", counts[0], counts[1])
		}
		if messages, fields := r.left(); messages+fields != 0 {
			t.Errorf("%d messages are left, %d fields", messages, fields)
		}
	})
}

// A key of another type is an error that names it, and nothing is changed: also no message stays hidden.
func TestMoveWrongTypes(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, r *rig) {
		k := r.m.keys
		spoiled := []string{k.Hash, k.Messages, k.Queue, k.Delayed}
		if r.m.apart {
			spoiled = append(spoiled, k.Migrated)
		}
		for _, key := range spoiled {
			r.do("DEL", k.Hash)
			r.do("DEL", k.Messages)
			r.many0()
			r.do("DEL", key)
			r.do("SET", key, "a string")
			before := r.dump()
			if c, err := r.m.move(t.Context()); err == nil || !strings.Contains(err.Error(), "XQTYPE key "+key) || c.Moved() != 0 {
				t.Errorf("%s: %+v, %v", key, c, err)
			}
			if r.dump() != before {
				t.Errorf("%s: the queues changed", key)
			}
			r.do("DEL", key)
		}
	})
}

// many0 makes the queue again, with some messages.
func (r *rig) many0() {
	r.t.Helper()
	if err := r.from.CreateQueue(r.t.Context(), r.q.Name, rsmq.QueueOptions{}); err != nil {
		r.t.Fatal(err)
	}
	r.many(3)
	r.send(time.Hour, "late")
}

// A lost answer is an error; the next run moves what is left, and nothing twice.
func TestMoveLostAnswer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	direct := redistest.Dial(t, server.URL())
	proxy := redistest.NewProxy(t, server.URL())
	for name, test := range map[string]struct {
		apart bool
		sha   string
	}{
		"move": {false, moveSHA}, "fetch": {true, fetchSHA}, "copy": {true, copySHA}, "forget": {true, forgetSHA}, "settle": {true, settleSHA},
	} {
		t.Run(name, func(t *testing.T) {
			q := Queues{Namespace: "rsmq", Name: name, To: name}
			r := rigOf(t, direct, q, test.apart)
			warm := rigOf(t, direct, Queues{Namespace: "rsmq", Name: name + "-warm", To: name + "-warm"}, test.apart)
			warm.many(1)
			warm.move() // the server knows the scripts now
			ids := append(r.many(700), r.send(time.Hour, "late")...)
			m := *r.m
			m.redis = redistest.Dial(t, proxy.URL())
			cut := proxy.CutAfterRequest([]byte(test.sha))
			if _, err := m.move(t.Context()); err == nil && test.sha != settleSHA { // which is sent again by itself
				t.Error("a lost answer is no error")
			}
			<-cut
			r.move()
			r.once(ids)
		})
	}
}

// The end of the context ends a move between two calls; the next run goes on.
func TestMoveCancelled(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, r *rig) {
		ids := r.many(1000)
		ctx, cancel := context.WithCancel(t.Context())
		r.m.progress = func(int64) { cancel() }
		c, err := r.m.move(ctx)
		if err == nil || c.Moved() != pageSize {
			t.Errorf("%+v, %v", c, err)
		}
		r.m.progress = func(int64) {}
		r.move()
		r.once(ids)
	})
}
