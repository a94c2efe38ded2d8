package xstreamq

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/wire"
)

// canary watches redriven messages until each is finished, or one of them is dead again.
//
// A finished message leaves no trace, so it is known by what it is not: on the retry stream, in backoff, or dead. Looking at
// one place after the other could miss a message that moves meanwhile. This does not, because
//
//   - the retry stream is read upwards, and what enters it does so at its end. Whatever is on it at the moment when a call
//     reaches that end was seen. The same call reads the head of the backoff set, so what was not seen by then can only wait
//     there, further up;
//   - the backoff set is read upwards by due time, and nothing leaves it before it is due. So as long as the reading is ahead
//     of the server's clock, what was not seen is still further up. A round that the clock overtakes proves nothing;
//   - what is in neither place is finished or dead. The dead letters are read after that. Only a redrive or purge by somebody
//     else takes one away again; a second round, somewhat later, sees one that was redriven.
type canary struct {
	client *Client
	keys   keys.Set
	crew   crew
	alive  map[string]*sighting // by original id
	unread wire.ID              // where the dead letters that are new begin
}

// sighting is what is known of one message.
type sighting struct {
	since   wire.ID // it is on the retry stream nowhere before this
	missing bool    // it was nowhere in the last round
}

// canaryFirst and canaryMost are the first and the longest pause between two rounds.
const (
	canaryFirst = 20 * time.Millisecond
	canaryMost  = 2 * time.Second
)

// newCanary makes one for dead letters up to the one given; what dies later is new.
func newCanary(c *Client, queue, group string, newest wire.ID) *canary {
	return &canary{
		client: c, keys: keys.ForGroup(c.cfg.KeyPrefix, queue, group), alive: map[string]*sighting{}, unread: newest.Next(),
		crew: crew{grace: canaryGrace, consumers: func(ctx context.Context) ([]Consumer, error) { return c.consumers(ctx, queue, group) }},
	}
}

// add has a message watched that is on the retry stream now.
func (w *canary) add(original, entry string) {
	since, _ := wire.ParseID(entry)
	if s, twice := w.alive[original]; twice && s.since.Less(since) {
		return // the same id on two dead letters: both are meant
	}
	w.alive[original] = &sighting{since: since}
}

// watch returns nil when all are finished, ErrCanary when one is dead, nobody works on them, or the time is up.
func (w *canary) watch(ctx context.Context, timeout time.Duration) error {
	all, end := len(w.alive), time.Now().Add(timeout)
	for pause := canaryFirst; ; pause = min(2*pause, canaryMost) {
		begun := time.Now()
		if err := w.round(ctx); err != nil {
			return err
		}
		if len(w.alive) == 0 {
			return nil
		}
		deserted, err := w.crew.gone(ctx)
		switch {
		case err != nil:
			return fmt.Errorf("watching the canary: %w", err)
		case deserted:
			return fmt.Errorf("%w: %d of its %d messages wait, and no worker of the group is alive; start one and try again",
				ErrCanary, len(w.alive), all)
		case !time.Now().Before(end):
			return fmt.Errorf("%w: %d of its %d messages are not finished after %v; is a worker of the group running?",
				ErrCanary, len(w.alive), all, timeout)
		}
		// Where a round is long, most of the time is still the others'.
		next := max(pause, 4*time.Since(begun))
		if err := sleep(ctx, min(next, time.Until(end))); err != nil {
			return err
		}
	}
}

// round takes those off that are finished.
func (w *canary) round(ctx context.Context) error {
	seen, sure, err := w.search(ctx)
	if err != nil {
		return fmt.Errorf("watching the canary: %w", err)
	}
	if err := w.readDead(ctx); err != nil {
		return err
	}
	for id, s := range w.alive {
		switch {
		case seen[id]:
			s.missing = false
		case !sure:
		case s.missing:
			delete(w.alive, id)
		default:
			s.missing = true
		}
	}
	return nil
}

// readDead reads the dead letters that are new, and returns ErrCanary when one of them is watched.
func (w *canary) readDead(ctx context.Context) error {
	news := w.client.pages(w.keys.DLQ, w.unread.String(), "+")
	for news.more() {
		entries, err := news.page(ctx, 0)
		if err != nil {
			return fmt.Errorf("watching the canary: %w", err)
		}
		for i := range entries {
			var e wire.Entry
			e.Decode(entries[i].id, entries[i].fields, true)
			if w.alive[e.Original] != nil {
				return fmt.Errorf("%w: message %s is dead again (%s, %.200q)", ErrCanary, e.Original, e.Reason, e.Error)
			}
			id, _ := wire.ParseID(e.ID)
			w.unread = id.Next()
		}
	}
	return nil
}

// search looks for those that are alive. sure is false when some of the others may be too.
func (w *canary) search(ctx context.Context) (seen map[string]bool, sure bool, err error) {
	seen = map[string]bool{}
	at := findArgs{From: w.first().String(), Due: "-inf"}
	for {
		at.IDs = w.unseen(seen)
		found, err := w.find(ctx, at)
		if err != nil {
			return nil, false, err
		}
		w.note(at.IDs, found, seen)
		switch {
		case len(seen) == len(w.alive):
			return seen, true, nil
		case at.From == "" && found.overtook(at.Due):
			return seen, false, nil
		case !found.ended:
			at.From = found.next.String()
		case found.due == "":
			return seen, true, nil
		default:
			at.From, at.Due, at.Skip = "", found.due, found.skip
		}
	}
}

// note keeps what one call of the find script says of those it looked for.
func (w *canary) note(sought []string, f *findings, seen map[string]bool) {
	for _, id := range sought {
		entry, found := f.at[id]
		if found {
			seen[id] = true
		}
		if since, onRetry := wire.ParseID(entry); onRetry {
			w.alive[id].since = since
		} else if f.read {
			w.alive[id].since = f.next
		}
	}
}

// first is where on the retry stream the first of them may be.
func (w *canary) first() wire.ID {
	ids := make([]wire.ID, 0, len(w.alive))
	for _, s := range w.alive {
		ids = append(ids, s.since)
	}
	return slices.MinFunc(ids, func(a, b wire.ID) int {
		if a.Less(b) {
			return -1
		}
		return 1
	})
}

func (w *canary) unseen(seen map[string]bool) []string {
	ids := slices.Collect(maps.Keys(w.alive))
	return slices.DeleteFunc(ids, func(id string) bool { return seen[id] })
}

// findings are the answer of the find script.
type findings struct {
	now   int64             // server ms
	read  bool              // something of the retry stream was read,
	next  wire.ID           // and this is where it goes on
	ended bool              // it was read to its end, now or before
	due   string            // where the backoff set goes on; empty = it was read to its end
	skip  int64             // how many of just that score were read
	at    map[string]string // original id, id on the retry stream or ""
}

// overtook: what is due there may have moved before this call.
func (f *findings) overtook(due string) bool {
	ms, err := strconv.ParseFloat(due, 64)
	return err != nil || ms <= float64(f.now)
}

func (w *canary) find(ctx context.Context, at findArgs) (*findings, error) {
	reply, err := bounded(ctx, func(ctx context.Context) ([]rueidis.RedisMessage, error) {
		return runFind(ctx, w.client.redis, w.keys, at).ToArray()
	})
	if err != nil {
		return nil, err
	}
	r := replyReader{reply: reply}
	f := &findings{now: r.int(), at: map[string]string{}}
	last, read := wire.ParseID(r.string())
	f.next, f.read = last.Next(), read
	f.ended, f.due, f.skip = r.int() == 1, r.string(), r.int()
	for r.err == nil && len(r.reply) > 0 {
		original := r.string()
		f.at[original] = r.string()
	}
	return f, r.err
}
