package oracle

import (
	"fmt"
	"math"

	"github.com/xstreamq/xstreamq/loadtest/internal/message"
	"github.com/xstreamq/xstreamq/loadtest/internal/report"
)

// place takes a message that is somewhere.
func (j *judge) place(f *found) {
	j.placed[f.place]++
	if f.seq < 0 {
		j.identity.add("%s: %v is no message of this test, or its body is not what was published: %.300s", f.place, f.id, fmt.Sprintf("%q", f.fields))
		return
	}
	if !j.known(f.seq, f.id, f.place.String()) {
		return
	}
	g := &j.groups[f.group]
	if g.places[f.seq] < math.MaxUint8 {
		g.places[f.seq]++
	}
	if f.counter("rc") < 0 || f.counter("lc") < 0 {
		j.identity.add("%s: the counters of %s are no numbers: rc %q, lc %q", f.place, j.name(f.group, f.seq), f.fields["rc"], f.fields["lc"])
	}
	switch {
	case f.place == dead:
		j.deadLetter(f)
	case f.place == leftover:
		j.left.add("%s is left over on the retry stream, where nobody looks at it again", j.name(f.group, f.seq))
	case j.o.Drained:
		j.left.add("%s is %s", j.name(f.group, f.seq), f.place)
	}
}

// deadLetter looks at one: only who failed more often than MaxRetries may be one, and all must say so.
func (j *judge) deadLetter(f *found) {
	j.deadLetters++
	name, reason, rc, lc := j.name(f.group, f.seq), f.fields["reason"], f.counter("rc"), f.counter("lc")
	switch {
	case reason == "lost-lease" && lc > j.o.MaxLostLeases:
		j.healthyDead.add("%s lost %d leases, so it is dead as the library promises: of MaxLostLeases %d (--max-lost-leases) "+
			"there were too few for so many kills", name, lc, j.o.MaxLostLeases)
	case !j.o.Plan.Dies(f.group, f.seq):
		j.healthyDead.add("%s is healthy, and dead: reason %q, rc %d, lc %d", name, reason, rc, lc)
	case reason != "failed":
		j.mustDie.add("%s is dead by reason of %q, not \"failed\"", name, reason)
	case rc != j.o.Plan.MaxRetries+1:
		j.mustDie.add("%s is dead with rc %d, not %d", name, rc, j.o.Plan.MaxRetries+1)
	case lc < int(j.groups[f.group].lost[f.seq]):
		j.mustDie.add("%s is dead with lc %d, and a handler saw %d", name, lc, j.groups[f.group].lost[f.seq])
	case f.fields["err"] != message.Failure:
		j.mustDie.add("%s is dead with the error %.100q, not %q", name, f.fields["err"], message.Failure)
	case f.counter("at") <= 0 || f.fields["from"] == "" || f.fields["by"] == "":
		j.mustDie.add("%s is dead and does not say when, from where or by whom: at %.40q, from %.40q, by %.200q", name, f.fields["at"],
			f.fields["from"], f.fields["by"])
	case !f.hasOID:
		j.mustDie.add("%s is dead and has no oid", name)
	case ^j.groups[f.group].ended[f.seq]&(1<<(j.o.Plan.MaxRetries+1)-1) != 0:
		j.mustDie.add("%s is dead, but of its %d attempts not every one ended", name, j.o.Plan.MaxRetries+1)
	}
}

// missingDead counts the messages that must be dead and are not, nor anywhere else.
func (j *judge) missingDead() {
	for group := range j.groups {
		g := &j.groups[group]
		for seq := range j.status {
			if g.started[seq] != 0 && g.places[seq] == 0 && j.o.Plan.Dies(group, seq) {
				j.mustDie.add("%s must be dead, and is not", j.name(group, seq))
			}
		}
	}
}

// chance holds the number of dead letters against what chance would have: within four standard deviations.
func (j *judge) chance() report.Check {
	published := j.acknowledged + j.unknownFound
	n, p := float64(published)*float64(j.o.Groups), j.o.Plan.DeathRate()
	expected, sigma := n*p, math.Sqrt(n*p*(1-p))
	off := math.Abs(float64(j.deadLetters) - expected)
	c := report.Check{
		Name: "the number of dead letters is what chance makes it",
		Want: fmt.Sprintf("%.1f ± %.1f (4 sigma of %.0f messages)", expected, 4*sigma, n),
		Got:  fmt.Sprint(j.deadLetters),
		Held: off <= 4*sigma,
	}
	if sigma > 0 {
		c.Got += fmt.Sprintf(" (%.1f sigma)", off/sigma)
	}
	if expected < 5 { // the normal distribution is no guide here, and each one is checked by itself
		c.Held = float64(j.deadLetters) <= expected+4*sigma+5
		c.Want = fmt.Sprintf("at most %.0f (%.2f expected)", expected+4*sigma+5, expected)
		if p == 0 {
			c.Held, c.Want = j.deadLetters == 0, "0"
		}
	}
	return c
}
