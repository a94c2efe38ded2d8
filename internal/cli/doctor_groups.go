package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/rediserr"
)

// From here on it is worth a word.
const (
	pendingMany  = 10_000
	deadMany     = 1_000
	deadRecently = 100
	holdsUpFor   = time.Hour
	holdsUpMost  = 1_000 // entries of the queue
	unseenFor    = 24 * time.Hour
	deadPatience = 3 * time.Second
)

// deeper is what doctor alone looks at.
type deeper struct {
	// unfinished is when the oldest message of the queue's stream that the group has not finished with was published.
	unfinished time.Time
	// deadSince is when the oldest dead letter died, deadLately how many did in the last hour: at most deadMany, -1 = not known.
	deadSince  time.Time
	deadLately int
}

// lookDeeper looks at what doctor alone wants to know. now is the server's time.
func (s *groupState) lookDeeper(ctx context.Context, client *xstreamq.Client, now time.Time) {
	if s.err == nil {
		s.err = s.lookUnfinished(ctx, client, now)
	}
	if s.err == nil && s.depth.Dead > 0 {
		s.err = s.lookAtDead(ctx, client)
	}
}

func (s *groupState) lookUnfinished(ctx context.Context, client *xstreamq.Client, now time.Time) error {
	switch {
	case s.oldest != nil && s.oldest.From == xstreamq.InQueue:
		s.unfinished = idTime(s.oldest.ID)
		return nil
	case s.depth.Backlog == 0:
		return nil
	case s.depth.Pending+s.depth.Retry == 0: // so that it is of the backlog
		if s.depth.Oldest > 0 {
			s.unfinished = now.Add(-s.depth.Oldest)
		}
		return nil
	}
	next, err := client.Peek(ctx, s.queue, s.group, xstreamq.PeekOptions{Count: 1})
	if len(next) > 0 {
		s.unfinished = idTime(next[0].ID)
	}
	return err
}

func (s *groupState) lookAtDead(ctx context.Context, client *xstreamq.Client) error {
	first, err := client.Peek(ctx, s.queue, s.group, xstreamq.PeekOptions{From: xstreamq.InDLQ, Count: 1})
	if err != nil {
		return err
	}
	if len(first) > 0 {
		if s.deadSince = first[0].At; s.deadSince.IsZero() {
			s.deadSince = idTime(first[0].ID) // another program's
		}
	}
	s.deadLately, err = diedLately(ctx, client, s)
	return err
}

// diedLately counts, in the time that there is for it: every dead letter has to be read.
func diedLately(ctx context.Context, client *xstreamq.Client, s *groupState) (n int, err error) {
	limited, cancel := context.WithTimeout(ctx, deadPatience)
	defer cancel()
	for _, err := range client.DeadLetters(limited, s.queue, s.group, xstreamq.DeadFilter{NewerThan: time.Hour}) {
		switch {
		case err == nil:
		case limited.Err() != nil && ctx.Err() == nil:
			return -1, nil
		default:
			return 0, err
		}
		if n++; n == deadMany {
			break
		}
	}
	return n, nil
}

// checkQueue judges a queue and its groups.
func (a *app) checkQueue(q *queueState, now time.Time) []finding {
	if q.err != nil {
		return []finding{refusal(q.err).of(q.queue, "")}
	}
	var found []finding
	if len(q.groups) == 0 {
		found = append(found, note("groups", "it has no group: nothing is delivered, and nothing is trimmed",
			"start a worker; a new group is given what is in the queue").of(q.queue, ""))
	}
	for _, s := range q.groups {
		for _, f := range a.checkGroup(s, now) {
			found = append(found, f.of(s.queue, s.group))
		}
	}
	return append(found, checkHoldUp(q, now)...)
}

func (a *app) checkGroup(s *groupState, now time.Time) []finding {
	if s.err != nil {
		return []finding{refusal(s.err)}
	}
	var found []finding
	for _, check := range []func(*groupState, time.Time) *finding{
		a.checkPresence, checkRow, checkWorkers, checkLeases, checkDue, checkPending, checkDead,
	} {
		if f := check(s, now); f != nil {
			found = append(found, *f)
		}
	}
	return found
}

func (a *app) checkPresence(s *groupState, _ time.Time) *finding {
	const check = "presence"
	var f finding
	switch stream := keys.ForQueue(a.conn.prefix, s.queue).Queue; {
	case s.missing:
		f = problem(check, "it is registered, and missing from the stream "+stream+": nothing is trimmed",
			"start its workers, which make it anew; if it is gone for good: "+s.command("forget"))
	case s.registration == nil:
		f = note(check, "it is on the stream "+stream+" and not registered: another program made it, or the registry was lost; trimming waits for it too",
			"nothing, if it is meant so; if it is gone for good: "+s.command("forget"))
	default:
		return nil
	}
	return &f
}

// checkRow finds rows of the registry that nobody seems to need.
func checkRow(s *groupState, now time.Time) *finding {
	const check = "registry"
	r := s.registration
	if r == nil || s.missing {
		return nil
	}
	var f finding
	switch {
	case r.LastSeen.IsZero():
		f = note(check, "its row cannot be read", "start a worker of it, which writes it anew")
	case now.Sub(r.LastSeen) > unseenFor && s.workers == 0 && s.waiting(now) == "":
		f = note(check, "no worker was seen for "+short(now.Sub(r.LastSeen)), "nothing, if it runs now and then; if it is gone for good: "+s.command("forget"))
	default:
		return nil
	}
	return &f
}

func checkWorkers(s *groupState, now time.Time) *finding {
	seen := s.unattended(now)
	do := "start its workers; if it is gone for good: " + s.command("forget")
	if seen == "" && s.unread() {
		seen, do = s.unreadText(now), "look at the logs of the workers for the reader"
	}
	if seen == "" {
		return nil
	}
	if r := s.registration; r != nil && !r.LastSeen.IsZero() && s.workers == 0 {
		seen += ", the last was seen " + short(now.Sub(r.LastSeen)) + " ago"
	}
	f := problem("workers", seen, do)
	return &f
}

func checkLeases(s *groupState, now time.Time) *finding {
	if s.unattended(now) != "" {
		return nil
	}
	var seen string
	switch {
	case s.forsaken > 0:
		seen = plural(int(s.forsaken), "message is", "messages are") + " held by workers that are gone, and nobody takes over"
	case s.worst.stuck():
		seen = fmt.Sprintf("message %s has a lease of %s and was not renewed for %s, and nobody takes it over", s.worst.ID, short(s.worst.lease), short(s.worst.Idle))
	default:
		return nil
	}
	f := problem("leases", seen, "look at the logs of the workers for the sweeper; at RetryMaxLen nothing is taken over")
	return &f
}

// checkDue: with workers alive, what is due is delivered within half a second.
func checkDue(s *groupState, now time.Time) *finding {
	late := max(lateness(s.backoffDue, now), lateness(s.delayedDue, now))
	if late == 0 || s.unattended(now) != "" {
		return nil
	}
	f := problem("due messages", "delayed messages or retries are overdue by "+short(late)+", and workers are alive",
		"look at the logs of the workers for the promoter; at RetryMaxLen retries wait")
	return &f
}

func checkPending(s *groupState, _ time.Time) *finding {
	if s.depth.Pending < pendingMany {
		return nil
	}
	f := warning("pending", fmt.Sprintf("%d messages are pending: every sweep of every worker walks all of them", s.depth.Pending),
		"lower Prefetch and Concurrency, or find out why handlers are slow: "+s.command("consumers"))
	return &f
}

func checkDead(s *groupState, now time.Time) *finding {
	if s.depth.Dead == 0 {
		return nil
	}
	seen := plural(int(s.depth.Dead), "dead letter", "dead letters")
	if !s.deadSince.IsZero() {
		seen += ", the oldest of " + short(now.Sub(s.deadSince)) + " ago"
	}
	switch s.deadLately {
	case -1:
		seen += ", too many to count those of the last hour"
	case deadMany:
		seen += fmt.Sprintf(", at least %d of the last hour", s.deadLately)
	default:
		seen += fmt.Sprintf(", %d of the last hour", s.deadLately)
	}
	const check = "dead letters"
	do := s.command("dlq top") + "; then redrive or purge them"
	f := note(check, seen, do)
	if s.depth.Dead >= deadMany || s.deadLately >= deadRecently {
		f = warning(check, seen, do)
	}
	return &f
}

// checkHoldUp finds the group that keeps most of a queue from being trimmed.
func checkHoldUp(q *queueState, now time.Time) []finding {
	var slowest *groupState
	for _, s := range q.groups {
		if s.err == nil && !s.unfinished.IsZero() && (slowest == nil || s.unfinished.Before(slowest.unfinished)) {
			slowest = s
		}
	}
	if slowest == nil || now.Sub(slowest.unfinished) < holdsUpFor || slowest.depth.Length < holdsUpMost {
		return nil
	}
	seen := fmt.Sprintf("it has not finished with a message of %s ago: nothing newer of the %d entries is trimmed",
		short(now.Sub(slowest.unfinished)), slowest.depth.Length)
	do := "add workers; if it is gone for good: " + slowest.command("forget")
	if slowest.depth.Pending > 0 {
		do = slowest.command("pending") + " says who holds it"
	}
	return []finding{warning("trimming", seen, do).of(slowest.queue, slowest.group)}
}

// command is a command line about the group.
func (s *groupState) command(name string) string {
	return fmt.Sprintf("xstreamq %s %s %s", name, s.queue, s.group)
}

// refusal is the finding of a queue or group that could not be looked at.
func refusal(err error) finding {
	text := explain(err)
	switch {
	case errors.Is(err, xstreamq.ErrInvalidName):
		return note("name", text, "nothing, if another program uses it; this one cannot")
	case rediserr.Code(err) == "NOPERM":
		return note("permissions", text, "docs/operations.md lists what an operator needs")
	case strings.Contains(text, "WRONGTYPE") || strings.Contains(text, "XQTYPE"):
		return problem("type", text, "find out who wrote that key, and RENAME it; workers make what they need anew")
	}
	return problem("look", text, "")
}
