package oracle

import (
	"testing"
	"time"

	"github.com/xstreamq/xstreamq/loadtest/internal/fault"
	"github.com/xstreamq/xstreamq/loadtest/internal/journal"
)

// More stories, of what is counted and of who runs beside whom.
var brokenOrder = []brokenStory{
	{"a kill that is not counted", func(s *story) {
		s.all(sound)
		s.ran(2, sound, 0, 0, 0, false)
		s.fault(fault.Kill, 2, 30*ms, 31*ms)
		s.ran(3, sound, 0, 0, 2200*ms, true)
	}, []string{isMiscounted}},
	{"the second kill is not counted", func(s *story) {
		s.all(sound)
		s.ran(2, sound, 0, 0, 0, false)
		s.fault(fault.Kill, 2, 30*ms, 31*ms)
		s.ran(3, sound, 0, 1, 2200*ms, false)
		s.fault(fault.Kill, 3, 2230*ms, 2231*ms)
		s.ran(4, sound, 0, 1, 4400*ms, true)
	}, []string{isMiscounted}},
	{"a failure forgets the lost leases", func(s *story) {
		s.all(once)
		s.ran(2, once, 0, 0, 0, false)
		s.fault(fault.Kill, 2, 30*ms, 31*ms)
		s.ran(3, once, 0, 1, 2200*ms, true)
		s.ran(3, once, 1, 0, 2500*ms, true)
	}, []string{isMiscounted}},
	{"one kill is counted twice", func(s *story) {
		s.all(sound)
		s.ran(2, sound, 0, 0, 0, false)
		s.fault(fault.Kill, 2, 30*ms, 31*ms)
		s.ran(3, sound, 0, 2, 2400*ms, true)
	}, []string{isLossCaused}},
	{"two kills, of which the second came before the handler began", func(s *story) {
		s.all(sound)
		s.ran(2, sound, 0, 0, 0, false)
		s.fault(fault.Kill, 2, 30*ms, 31*ms)
		s.fault(fault.Kill, 3, 2300*ms, 2301*ms)
		s.ran(4, sound, 0, 2, 4500*ms, true)
	}, nil},
	{"an entry that was read twice", func(s *story) {
		s.all(sound)
		s.ran(2, sound, 0, 0, 0, true)
		s.ran(3, sound, 0, 0, 20*ms, true)
	}, []string{isRepeated, isMiscounted, isBeside}},
	{"taken from a living worker whose handler ran on", func(s *story) {
		s.all(sound)
		s.ran(2, sound, 0, 0, 0, true)
		s.ran(3, sound, 0, 1, 40*ms, true)
	}, []string{isRepeated, isLossCaused, isBeside}},
	{"taken from a worker just before its kill", func(s *story) {
		s.all(sound)
		s.ran(2, sound, 0, 0, 0, false)
		s.fault(fault.Kill, 2, 45*ms, 46*ms)
		s.ran(3, sound, 0, 1, 40*ms, true)
	}, []string{isLossCaused, isBeside}},
	{"taken from a living worker whose handler gave up", func(s *story) {
		s.all(sound)
		s.ran(2, sound, 0, 0, 0, true)
		last := len(s.records[2]) - 1
		s.records[2][last].Kind = journal.GivenUp
		s.ran(3, sound, 0, 1, 40*ms, true)
	}, []string{isLossCaused, isBeside}},
	{"a stopped worker wakes and runs what another has", func(s *story) {
		s.all(sound)
		s.fault(fault.Stop, 2, 0, 3*time.Second)
		s.ran(3, sound, 0, 1, 2980*ms, true)
		s.ran(2, sound, 0, 0, 3*time.Second, true)
	}, nil},
	{"stopped 60 ms after the end, and its worker had been given no time", func(s *story) {
		s.all(sound)
		s.ran(2, sound, 0, 0, 0, true)
		s.beat(2, 0, 60*ms, 10*ms)
		s.beat(2, 3200*ms, 3500*ms, 10*ms)
		s.fault(fault.Stop, 2, 110*ms, 3110*ms)
		s.ran(3, sound, 0, 1, 2100*ms, true)
	}, nil},
	{"stopped 60 ms after the end, and its worker had been given time", func(s *story) {
		s.all(sound)
		s.ran(2, sound, 0, 0, 0, true)
		s.beat(2, 0, 110*ms, 10*ms)
		s.beat(2, 3200*ms, 3500*ms, 10*ms)
		s.fault(fault.Stop, 2, 110*ms, 3110*ms)
		s.ran(3, sound, 0, 1, 2100*ms, true)
	}, []string{isRepeated}},
	{"a stopped worker wakes, and begins what it has lost and another was killed with", func(s *story) {
		s.all(sound)
		s.fault(fault.Stop, 2, 0, 3*time.Second)
		s.ran(2, sound, 0, 0, 3010*ms, true)
		s.fault(fault.Kill, 2, 3600*ms, 3601*ms)
		s.fault(fault.Kill, 4, 3700*ms, 3701*ms)
		s.ran(5, sound, 0, 2, 7*time.Second, true)
	}, nil},
	{"killed 300 ms after the end, and its worker had been given no time for 150", func(s *story) {
		s.all(sound)
		s.ran(2, sound, 0, 0, 0, true)
		s.beat(2, 0, 60*ms, 10*ms)
		s.beat(2, 200*ms, 350*ms, 10*ms)
		s.fault(fault.Kill, 2, 350*ms, 351*ms)
		s.ran(3, sound, 0, 1, 3*time.Second, true)
	}, nil},
	{"killed 300 ms after the end, and its worker had been given no time since", func(s *story) {
		s.all(sound)
		s.ran(2, sound, 0, 0, 0, true)
		s.beat(2, 0, 60*ms, 10*ms)
		s.fault(fault.Kill, 2, 350*ms, 351*ms)
		s.ran(3, sound, 0, 1, 3*time.Second, true)
	}, nil},
	{"killed 300 ms after the end, and its worker had been given time", func(s *story) {
		s.all(sound)
		s.ran(2, sound, 0, 0, 0, true)
		s.beat(2, 0, 350*ms, 10*ms)
		s.fault(fault.Kill, 2, 350*ms, 351*ms)
		s.ran(3, sound, 0, 1, 3*time.Second, true)
	}, []string{isRepeated, isLossCaused}},
	{"killed 1.1 s after the end, whatever was late", func(s *story) {
		s.all(sound)
		s.ran(2, sound, 0, 0, 0, true)
		s.fault(fault.Late, 0, 50*ms, 1100*ms)
		s.fault(fault.Kill, 2, 1150*ms, 1151*ms)
		s.ran(3, sound, 0, 1, 5*time.Second, true)
	}, []string{isRepeated, isLossCaused}},
	{"a handler that ended and had not begun", func(s *story) {
		s.all()
		s.records[1] = s.records[1][1:]
	}, []string{isIdentity}},
	{"an end that stands there twice", func(s *story) {
		s.all()
		s.records[1] = append(s.records[1], s.records[1][1])
	}, []string{isIdentity}},
	{"a dead letter without its error", func(s *story) {
		s.all()
		s.do("DEL", s.opts.Keys.dead(0))
		s.deadAll("rc", "3", "reason", "failed", "err", "")
	}, []string{isMustDie}},
	{"a dead letter that does not say where it was", func(s *story) {
		s.all()
		s.do("DEL", s.opts.Keys.dead(0))
		s.deadAll("rc", "3", "reason", "failed", "from", "")
	}, []string{isMustDie}},
	{"a dead letter that forgot a lost lease", func(s *story) {
		s.all(doomed)
		s.ran(2, doomed, 0, 0, 0, false)
		s.fault(fault.Kill, 2, 30*ms, 31*ms)
		for n := range 3 {
			s.ran(3, doomed, n, 1, time.Duration(n+3)*time.Second, true)
		}
		s.dead(doomed, "rc", "3", "reason", "failed", "oid", id(doomed).String())
	}, []string{isMustDie}},
	{"a body that was cut", func(s *story) {
		s.all(sound)
		s.ran(1, sound, 0, 0, 0, true)
		s.do("XADD", s.opts.Keys.dead(0), "*", "body", body(sound)[:40], "oid", id(sound).String())
	}, []string{isIdentity}},
}

// A fault excuses no more than what workers held then, and lateness only a few.
func TestExcusesAreBounded(t *testing.T) {
	t.Parallel()
	o := Options{Groups: 1, Plan: storyPlan, Workers: 3, Held: 10, Faults: []fault.Event{{Kind: fault.Kill, Run: 1}, {Kind: fault.Stop, Run: 2}, {Kind: fault.Outage}}}
	for name, row := range map[string]struct {
		put  func(*judge, int64)
		most int64
	}{
		"late":                {func(j *judge, n int64) { j.repeats[lateEnd] = n }, 2*10 + 1000/200},
		"stopped":             {func(j *judge, n int64) { j.repeats[stopped] = n }, 10},
		"outage":              {func(j *judge, n int64) { j.repeats[outage] = n }, 30},
		"pause that was none": {func(j *judge, n int64) { j.repeats[paused] = n }, 0},
		"beside":              {func(j *judge, n int64) { j.overlaps[stopped] = n }, 10},
		"leases, killed":      {func(j *judge, n int64) { j.losses[inHandler] = n }, 10},
		"leases, outage":      {func(j *judge, n int64) { j.losses[outage] = n }, 30},
		"leases, before":      {func(j *judge, n int64) { j.losses[beforeStart] = n }, 10 + 10 + 30},
	} {
		for over, held := range map[int64]bool{0: true, 1: false} {
			j := newJudge(o)
			j.ok = 1000
			row.put(j, row.most+over)
			if c := j.bounded(); c.Held != held || len(c.Examples) != int(over) {
				t.Errorf("%s, %d: %+v", name, row.most+over, c)
			}
		}
	}
}
