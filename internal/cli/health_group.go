package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/keys"
)

// What is not to be called slow yet, let alone stuck.
const (
	// dueSlack: workers look for due messages more often than that.
	dueSlack = 5 * time.Second
	// takeOverSlack comes on top of three leases, in which another worker should have taken over.
	takeOverSlack = 15 * time.Second
	// readSlack: a worker that has room reads at once.
	readSlack = 15 * time.Second
	// seenSlack: a running worker notes itself in the registry every minute.
	seenSlack = 90 * time.Second
)

// seen reports that a worker noted itself lately.
func (s *groupState) seen(now time.Time) bool {
	r := s.registration
	return r != nil && !r.LastSeen.IsZero() && now.Sub(r.LastSeen) < seenSlack
}

// unattended says what waits for a worker when none is alive; empty: nothing does. One without leases gives no sign of life while its
// handlers are busy, but notes itself in the registry.
func (s *groupState) unattended(now time.Time) string {
	noLeases := s.registration != nil && s.registration.VisibilityTimeout == 0
	waiting := s.waiting(now)
	if waiting == "" || s.workers > 0 || s.progress == moving || noLeases && s.seen(now) {
		return ""
	}
	return "messages wait (" + waiting + ") and no worker is alive"
}

// waiting says what waits for a worker; empty: nothing does.
func (s *groupState) waiting(now time.Time) string {
	var parts []string
	add := func(n int64, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	if s.depth.Backlog == xstreamq.UnknownLag {
		parts = append(parts, "an unknown number not delivered yet")
	}
	add(s.depth.Backlog, "not delivered yet")
	add(s.depth.Retry, "to be retried")
	add(s.abandoned, "held by workers that are gone")
	if late := lateness(s.backoffDue, now); late > 0 {
		parts = append(parts, "retries due since "+short(late))
	}
	if late := lateness(s.delayedDue, now); late > 0 && s.registration != nil {
		parts = append(parts, "delayed ones due since "+short(late))
	}
	return strings.Join(parts, ", ")
}

// lateness is how long ago something was due, 0 where that is not long.
func lateness(due, now time.Time) time.Duration {
	if due.IsZero() || now.Sub(due) < dueSlack {
		return 0
	}
	return now.Sub(due)
}

// problems judges a group: what is wrong with it, one sentence each.
func (s *groupState) problems(prefix string, now time.Time) []string {
	if s.err != nil {
		return []string{explain(s.err)}
	}
	var found []string
	if s.missing {
		found = append(found, "its consumer group is missing from the stream "+keys.ForQueue(prefix, s.queue).Queue)
	}
	unattended := s.unattended(now)
	switch {
	case unattended != "":
		found = append(found, unattended)
	case s.forsaken > 0:
		found = append(found, "nobody takes over "+plural(int(s.forsaken), "message", "messages")+" of workers that are gone")
	case s.worst.stuck():
		found = append(found, fmt.Sprintf("nobody takes over message %s, whose lease of %s was not renewed for %s",
			s.worst.ID, short(s.worst.lease), short(s.worst.Idle)))
	case s.unread():
		found = append(found, s.unreadText(now))
	}
	return found
}

// stuck reports a message that should have been taken over long ago.
func (p *pendingState) stuck() bool {
	return p.overdue() > 0 && p.Idle > takenOverBy(p.lease)
}

// takenOverBy is how long a message may be idle until it is clear that nobody takes it over.
func takenOverBy(lease time.Duration) time.Duration { return 3*lease + takeOverSlack }

func (s *groupState) unreadText(now time.Time) string {
	return fmt.Sprintf("messages wait for %s (%s) and its %s not read them",
		short(s.depth.Oldest), s.waiting(now), plural(s.workers, "live worker does", "live workers do"))
}

// unread reports that workers are alive, hold nothing, and do not read what has waited for long.
func (s *groupState) unread() bool {
	return s.workers > 0 && s.progress == still && s.depth.Pending == 0 && s.depth.Backlog+s.depth.Retry > 0 && s.depth.Oldest > readSlack
}

// groupHealth is the report on a group.
func (a *app) groupHealth(s *groupState, now time.Time) groupHealth {
	h := groupHealth{
		Queue: s.queue, LiveWorkers: s.workers, Backlog: known(s.depth.Backlog), Pending: s.depth.Pending, Retry: s.depth.Retry,
		Backoff: s.depth.Backoff, OldestMS: millis(s.depth.Oldest), Progress: s.progress, Problems: s.problems(a.conn.prefix, now),
	}
	h.Group, h.GroupBase64 = exact(s.group)
	if s.registration != nil {
		h.LastSeen = stamp(s.registration.LastSeen)
	}
	h.detail = s.crew(now) + s.load()
	if s.oldest != nil {
		age := now.Sub(idTime(s.oldest.ID))
		h.PendingIdleMS, h.PendingAgeMS = millis(s.oldest.Idle), millis(age)
		h.detail += fmt.Sprintf(", the oldest pending for %s, renewed %s ago", short(age), short(s.oldest.Idle))
	}
	switch {
	case len(h.Problems) > 0:
		h.State = "unhealthy"
		h.detail = strings.Join(h.Problems, "; ")
	case s.depth.Empty() && s.waiting(now) == "":
		h.State = "idle"
	default:
		h.State = "working"
		if s.progress != "" {
			h.detail += ", " + s.progress
		}
	}
	return h
}

// crew says who works on it.
func (s *groupState) crew(now time.Time) string {
	if s.workers == 0 && s.seen(now) {
		return "no worker, the last seen " + short(now.Sub(s.registration.LastSeen)) + " ago"
	}
	return plural(s.workers, "worker", "workers")
}

// load says how many messages are where.
func (s *groupState) load() string {
	d := s.depth
	if d.Empty() {
		return ", nothing waits"
	}
	return fmt.Sprintf(", %s not delivered yet, %d pending, %d to be retried, %d in backoff", count(d.Backlog), d.Pending, d.Retry, d.Backoff)
}

// plural is a number of things; 0 is "no".
func plural(n int, one, many string) string {
	switch n {
	case 0:
		return "no " + one
	case 1:
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// printHealth prints the report, a line for each thing that was looked at; on a terminal whole sentences.
func (a *app) printHealth(r *healthReport) error {
	if a.json {
		return a.print(r)
	}
	out := a.newList("what", "state", "detail")
	for _, row := range r.rows() {
		var err error
		if isTerminal(a.out) {
			err = a.say(row.state, row.what, row.detail, "")
		} else {
			err = out.add(nil, row.what, row.state, row.detail)
		}
		if err != nil {
			return err
		}
	}
	return out.close()
}

type healthRow struct{ what, state, detail string }

func (r *healthReport) rows() []healthRow {
	role := healthRow{"role", "ok", r.Redis.Role}
	if r.Redis.Role == "" {
		role = healthRow{"role", "unknown", "this user may not ask: +role"}
	}
	write := healthRow{"write", "ok", "accepted"}
	switch w := r.Redis.Writable; {
	case w == nil:
		write = healthRow{"write", "unknown", "this user may not write"}
	case !*w:
		write = healthRow{"write", "unhealthy", r.Redis.problem}
	}
	rows := []healthRow{{"connection", "ok", fmt.Sprintf("round trip %.2fms", r.Redis.RoundTripMS)}, role, write}
	for i := range r.Groups {
		g := &r.Groups[i]
		name := string(g.GroupBase64)
		if g.Group != nil {
			name = *g.Group
		}
		rows = append(rows, healthRow{g.Queue + "/" + name, g.State, g.detail})
	}
	for _, p := range r.other {
		rows = append(rows, healthRow{"queue", "unhealthy", p})
	}
	if len(r.Groups) == 0 && len(r.other) == 0 {
		rows = append(rows, healthRow{"groups", "ok", "none is registered"})
	}
	return rows
}
