package oracle

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xstreamq/xstreamq/loadtest/internal/fault"
	"github.com/xstreamq/xstreamq/loadtest/internal/journal"
	"github.com/xstreamq/xstreamq/loadtest/internal/producer"
)

// The checks, by a part of their names.
const (
	isLost       = "no acknowledged message is lost"
	isTwice      = "in two places"
	isLeft       = "nothing is left"
	isBudget     = "no budget"
	isHealthy    = "no healthy message"
	isMustDie    = "who must die"
	isUncounted  = "no failure is counted"
	isIdentity   = "was published, once"
	isRepeated   = "each repeated run"
	isLossCaused = "each lost lease"
	isMiscounted = "each delivery counts"
	isBeside     = "beside another of its message"
)

var (
	sound  = pick(0) // succeeds at once
	once   = pick(1) // fails once
	doomed = pick(3) // must die
)

const ms = time.Millisecond

// brokenStory breaks the promises that are named in it, and no others.
type brokenStory struct {
	name   string
	tell   func(*story)
	broken []string
}

var broken = []brokenStory{
	{"a clean run", func(s *story) { s.all() }, nil},
	{"a message that nobody handled", func(s *story) { s.all(sound) }, []string{isLost}},
	{"a message that failed and did not come again", func(s *story) {
		s.all(once)
		s.ran(1, once, 0, 0, 0, true)
	}, []string{isLost}},
	{"a handler that began and never ended", func(s *story) {
		s.all(sound)
		s.ran(2, sound, 0, 0, 0, false)
	}, []string{isLost}},
	{"an unknown publish that was read and lost", func(s *story) {
		s.all(sound)
		s.acks[sound] = producer.Ack{Seq: sound, Status: producer.Unknown}
		s.ran(2, sound, 0, 0, 0, false)
	}, []string{isLost}},
	{"an unknown publish that never arrived", func(s *story) {
		s.all(sound)
		s.acks[sound] = producer.Ack{Seq: sound, Status: producer.Unknown}
	}, nil},
	{"a refused publish", func(s *story) {
		s.all(sound)
		s.acks[sound] = producer.Ack{Seq: sound, Status: producer.Refused}
	}, nil},
	{"a refused publish that was handled", func(s *story) {
		s.all()
		s.acks[sound] = producer.Ack{Seq: sound, Status: producer.Refused}
	}, []string{isIdentity}},
	{"pending and on the retry stream", func(s *story) {
		s.opts.Drained = false
		s.all(sound)
		s.onQueue(sound, true)
		s.onRetry(sound, false, false)
	}, []string{isTwice}},
	{"twice on the retry stream", func(s *story) {
		s.opts.Drained = false
		s.all(sound)
		s.onRetry(sound, true, false)
		s.onRetry(sound, false, false)
	}, []string{isTwice}},
	{"dead and waiting", func(s *story) {
		s.opts.Drained = false
		s.all()
		s.delayed(doomed)
	}, []string{isTwice}},
	{"two dead letters of one message", func(s *story) {
		s.all()
		s.dead(doomed, "rc", "3", "reason", "failed", "oid", id(doomed).String())
	}, []string{isTwice}},
	{"not handled, but undelivered, and the run was cut short", func(s *story) {
		s.opts.Drained = false
		s.all(sound)
		s.onQueue(sound, false)
	}, nil},
	{"not handled, but undelivered", func(s *story) {
		s.all(sound)
		s.onQueue(sound, false)
	}, []string{isLeft}},
	{"pending after the drain", func(s *story) {
		s.all(sound)
		s.onQueue(sound, true)
	}, []string{isLeft}},
	{"waiting after the drain", func(s *story) {
		s.all(sound)
		s.delayed(sound)
	}, []string{isLeft}},
	{"left over on the retry stream", func(s *story) {
		s.opts.Drained = false
		s.all()
		s.onRetry(sound, true, true)
	}, []string{isLeft}},
	{"more failures than MaxRetries", func(s *story) {
		s.all()
		s.ran(1, doomed, 3, 0, 99*time.Second, true)
	}, []string{isBudget}},
	{"more lost leases than MaxLostLeases", func(s *story) {
		s.all(sound)
		s.fault(fault.Kill, 9, 0, ms)
		s.ran(1, sound, 0, 6, 20*time.Second, true)
	}, []string{isBudget}},
	{"a healthy message that is dead", func(s *story) {
		s.all(sound)
		s.dead(sound, "rc", "3", "reason", "failed", "oid", id(sound).String())
	}, []string{isHealthy}},
	{"dead of six kills", func(s *story) {
		s.all(sound)
		s.dead(sound, "lc", "6", "reason", "lost-lease", "oid", id(sound).String())
	}, []string{isHealthy}},
	{"a dead letter with too small a counter", func(s *story) {
		s.all()
		s.do("DEL", s.opts.Keys.dead(0))
		s.deadAll("rc", "2", "reason", "failed")
	}, []string{isMustDie}},
	{"a dead letter of another reason", func(s *story) {
		s.all()
		s.do("DEL", s.opts.Keys.dead(0))
		s.deadAll("rc", "3", "reason", "rejected")
	}, []string{isMustDie}},
	{"a dead letter without its id", func(s *story) {
		s.do(append([]string{"XADD", s.opts.Keys.dead(0), id(doomed).String(), "body", body(doomed), "rc", "3", "reason", "failed"}, deadFields...)...)
		s.all(doomed)
		for n := range 3 {
			s.ran(1, doomed, n, 0, time.Duration(n)*time.Second, true)
		}
	}, []string{isMustDie}},
	{"a dead letter under another id", func(s *story) {
		s.all(doomed)
		for n := range 3 {
			s.ran(1, doomed, n, 0, time.Duration(n)*time.Second, true)
		}
		s.dead(doomed, "rc", "3", "reason", "failed", "oid", "1-1")
	}, []string{isIdentity}},
	{"dead before its time", func(s *story) {
		s.all(doomed)
		s.ran(1, doomed, 0, 0, 0, true)
		s.dead(doomed, "rc", "3", "reason", "failed", "oid", id(doomed).String())
	}, []string{isMustDie}},
	{"a dead letter that is missing", func(s *story) {
		s.all(doomed)
		for n := range 3 {
			s.ran(1, doomed, n, 0, time.Duration(n)*time.Second, true)
		}
	}, []string{isLost, isMustDie}},
	{"a failure that no handler returned", func(s *story) {
		s.all(sound)
		s.ran(1, sound, 1, 0, 0, true)
	}, []string{isUncounted}},
	{"a dead letter that is not ours", func(s *story) {
		s.all()
		s.do("XADD", s.opts.Keys.dead(0), "*", "body", "a stranger's", "oid", "1-1")
	}, []string{isIdentity}},
	{"handled under another id", func(s *story) {
		s.all()
		s.records[1][0].Original = journal.ID{Ms: 5}
	}, []string{isIdentity}},
	{"handled and never published", func(s *story) {
		s.all()
		s.acks = slices.Delete(s.acks, sound, sound+1)
	}, []string{isIdentity}},
	{"published twice", func(s *story) {
		s.all()
		s.acks = append(s.acks, s.acks[0])
	}, []string{isIdentity}},
	{"handled twice, for no reason", func(s *story) {
		s.all(sound)
		s.ran(1, sound, 0, 0, 0, true)
		s.ran(2, sound, 0, 0, time.Second, true)
	}, []string{isRepeated, isMiscounted}},
	{"failed twice in one attempt, for no reason", func(s *story) {
		s.all(once)
		s.ran(1, once, 0, 0, 0, true)
		s.ran(2, once, 0, 0, time.Second, true)
		s.ran(2, once, 1, 0, 2*time.Second, true)
	}, []string{isRepeated, isMiscounted}},
	{"handled twice: its worker was killed 19 ms after the end", func(s *story) {
		s.all(sound)
		s.ran(2, sound, 0, 0, 0, true)
		s.fault(fault.Kill, 2, 69*ms, 75*ms)
		s.ran(3, sound, 0, 1, 3*time.Second, true)
	}, nil},
	{"handled twice: its worker was killed 21 ms after the end", func(s *story) {
		s.all(sound)
		s.ran(2, sound, 0, 0, 0, true)
		s.fault(fault.Kill, 2, 71*ms, 75*ms)
		s.ran(3, sound, 0, 1, 3*time.Second, true)
	}, []string{isRepeated, isLossCaused}},
	{"handled twice: its worker was killed 300 ms after the end, of which the server was late for 150", func(s *story) {
		s.all(sound)
		s.ran(2, sound, 0, 0, 0, true)
		s.fault(fault.Late, 0, 60*ms, 210*ms)
		s.fault(fault.Kill, 2, 350*ms, 351*ms)
		s.ran(3, sound, 0, 1, 3*time.Second, true)
	}, nil},
	{"handled twice: its worker was killed 300 ms after the end, of which the server was late for 100", func(s *story) {
		s.all(sound)
		s.ran(2, sound, 0, 0, 0, true)
		s.fault(fault.Late, 0, 60*ms, 160*ms)
		s.fault(fault.Kill, 2, 350*ms, 351*ms)
		s.ran(3, sound, 0, 1, 3*time.Second, true)
	}, []string{isRepeated, isLossCaused}},
	{"handled twice: another worker was killed", func(s *story) {
		s.all(sound)
		s.ran(2, sound, 0, 0, 0, true)
		s.fault(fault.Kill, 4, 55*ms, 56*ms)
		s.ran(3, sound, 0, 1, 3*time.Second, true)
	}, []string{isRepeated, isLossCaused}},
	{"handled twice: the first worker stood still", func(s *story) {
		s.all(sound)
		s.ran(2, sound, 0, 0, 3*time.Second, true)
		s.fault(fault.Stop, 2, 3060*ms, 6*time.Second)
		s.ran(3, sound, 0, 1, 5200*ms, true)
	}, nil},
	{"handled twice: the server was down", func(s *story) {
		s.all(sound)
		s.ran(2, sound, 0, 0, 0, true)
		s.fault(fault.Outage, 0, 60*ms, 400*ms)
		s.ran(3, sound, 0, 1, 3*time.Second, true)
	}, nil},
	{"handled twice: the server was down long before", func(s *story) {
		s.all(sound)
		s.fault(fault.Outage, 0, 0, 400*ms)
		s.ran(2, sound, 0, 0, 10*time.Second, true)
		s.ran(3, sound, 0, 0, 13*time.Second, true)
	}, []string{isRepeated, isMiscounted}},
	{"handled twice: the machine stood still, then its worker was killed", func(s *story) {
		s.all(sound)
		s.ran(2, sound, 0, 0, 0, true)
		s.fault(fault.Pause, 0, 55*ms, 5900*ms)
		s.fault(fault.Kill, 2, 6*time.Second, 6001*ms)
		s.ran(3, sound, 0, 1, 8*time.Second, true)
	}, nil},
	{"a lease lost to a kill", func(s *story) {
		s.all(sound)
		s.ran(2, sound, 0, 0, 0, false)
		s.fault(fault.Kill, 2, 30*ms, 31*ms)
		s.ran(3, sound, 0, 1, 2200*ms, true)
	}, nil},
	{"a lease taken from a living worker", func(s *story) {
		s.all(sound)
		s.ran(2, sound, 0, 0, 0, false)
		s.ran(3, sound, 0, 1, 2200*ms, true)
	}, []string{isLossCaused}},
	{"a lease lost though nothing had happened", func(s *story) {
		s.all(sound)
		s.ran(3, sound, 0, 1, 2200*ms, true)
	}, []string{isLossCaused}},
	{"a lease lost to a kill before the handler began", func(s *story) {
		s.all(sound)
		s.fault(fault.Kill, 2, 30*ms, 31*ms)
		s.ran(3, sound, 0, 1, 2200*ms, true)
	}, nil},
}

// deadAll makes a dead letter of each message that must be one.
func (s *story) deadAll(fields ...string) {
	for seq := range storyMessages {
		if s.opts.Plan.Dies(0, seq) {
			s.dead(seq, append(fields, "oid", id(seq).String())...)
		}
	}
}

func TestOracleCatchesEachBrokenPromise(t *testing.T) {
	t.Parallel()
	for _, b := range append(broken, brokenOrder...) {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			s := newStory(t)
			b.tell(s)
			v := s.judge()
			var got []string
			for _, c := range v.Checks {
				if !c.Held {
					got = append(got, c.Name)
					t.Logf("%s: want %s, got %s; %q", c.Name, c.Want, c.Got, c.Examples)
				}
			}
			unexpected := slices.DeleteFunc(slices.Clone(got), func(name string) bool {
				return slices.ContainsFunc(b.broken, func(part string) bool { return strings.Contains(name, part) })
			})
			if len(unexpected) > 0 || len(got) != len(b.broken) {
				t.Errorf("broken are %q, and should be %q", got, b.broken)
			}
			if v.Held() != (len(b.broken) == 0) {
				t.Errorf("the verdict is %v", v.Held())
			}
		})
	}
}

// The number of dead letters is held against chance: whoever agrees with a wrong plan is caught here.
func TestOracleCountsDeadLetters(t *testing.T) {
	t.Parallel()
	o := Options{Messages: 0, Groups: 1, Plan: storyPlan}
	o.Plan = storyPlan
	o.Plan.Rate, o.Plan.MaxRetries = 0.25, 3
	for dead, held := range map[int64]bool{781: true, 781 - 111: true, 781 + 111: true, 781 - 113: false, 781 + 113: false, 0: false} {
		j := newJudge(o)
		j.acknowledged, j.deadLetters = 200_000, dead
		if c := j.chance(); c.Held != held {
			t.Errorf("%d dead letters: %+v", dead, c)
		}
	}
	o.Plan.Rate = 0
	j := newJudge(o)
	j.acknowledged, j.deadLetters = 200_000, 1
	if c := j.chance(); c.Held {
		t.Errorf("one dead letter without any failure: %+v", c)
	}
}

// A worker that was stopped was given no time either, and that is not called late.
func TestStoppedWorkerIsNotLate(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.all(sound)
	s.ran(2, sound, 0, 0, 0, true)
	s.beat(2, 0, 60*ms, 10*ms)
	s.fault(fault.Stop, 2, 65*ms, 365*ms)
	s.fault(fault.Kill, 2, 370*ms, 371*ms)
	s.ran(3, sound, 0, 1, 3*time.Second, true)
	v := s.judge()
	for _, table := range v.Tables[:2] {
		if len(table.Rows) != 1 || table.Rows[0][0] != causeText[stopped] {
			t.Errorf("%+v", table)
		}
	}
	if !v.Held() {
		t.Errorf("%+v", v.Checks)
	}
}

// What a run reports of causes: each kind is told apart.
func TestOracleNamesCauses(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.all(sound, once)
	s.ran(2, sound, 0, 0, 0, true)
	s.fault(fault.Kill, 2, 55*ms, 60*ms)
	s.ran(3, sound, 0, 1, 2200*ms, true)
	s.ran(4, once, 0, 0, 0, false)
	s.fault(fault.Kill, 4, 20*ms, 21*ms)
	s.ran(5, once, 0, 1, 2200*ms, true)
	s.ran(5, once, 1, 1, 2500*ms, true)
	v := s.judge()
	got := map[string]string{}
	for _, table := range v.Tables {
		for _, row := range table.Rows {
			got[strings.SplitN(table.Title, ";", 2)[0]+": "+row[0]] = strings.Join(row[1:], " ")
		}
	}
	want := map[string]string{
		"Handlers that ended twice in one attempt: worker killed just after the handler's end": "1 0.50",
		"Lost leases that handlers saw: worker killed just after the handler's end":            "1 0.50",
		"Lost leases that handlers saw: worker killed while the handler ran":                   "1 0.50",
		"Messages by lost leases: 1": "2",
		"Messages in Redis: dead":    got["Messages in Redis: dead"],
	}
	if diff := cmp.Diff(want, got); diff != "" || !v.Held() {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if v.RepeatedPerKill != 0.5 {
		t.Errorf("%v repeated per kill", v.RepeatedPerKill)
	}
}
