package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/xstreamq/xstreamq"
)

// lineSender publishes lines in batches and prints the ids.
type lineSender struct {
	queue   *xstreamq.Queue[[]byte]
	options []xstreamq.PublishOption
	ids     *idPrinter
	stored  int
	last    int // number of the last line that was sent
}

// sendGrace is how long a batch that is under way when the command is ended may still take. Cut off at once, nobody could say
// what of it was stored.
const sendGrace = time.Second

// sendAll publishes what is gathered, batch after batch, until the input ends: that is no error.
func (s *lineSender) sendAll(ctx context.Context, lines *gathered, stored func(int)) error {
	sending, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		lines.abandon(context.Cause(ctx))
		time.AfterFunc(sendGrace, cancel)
	})()
	for {
		batch, err := lines.take()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && ctx.Err() != nil:
			return fmt.Errorf("%s; line %d and what follows it was not sent: %w", s.soFar(), s.last+1, interruption(ctx))
		case err != nil:
			return fmt.Errorf("%s; nothing more was sent: %w", s.soFar(), err)
		}
		if err := s.send(sending, batch); err != nil {
			lines.abandon(err)
			return cutOff(ctx, err)
		}
		stored(s.stored)
	}
}

// cutOff says of an error that came because the command was ended also what ended it. It is not wrapped: of an interrupted command
// nothing else would be told.
func cutOff(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return errors.New(interruption(ctx).Error() + ": " + err.Error())
}

// interruption says what ended a command before its work was done.
func interruption(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return errors.New("the time of --timeout is over")
	}
	return errors.New("interrupted")
}

// send publishes one batch and prints the ids of what was stored.
func (s *lineSender) send(ctx context.Context, batch []line) error {
	messages := make([]xstreamq.Outgoing[[]byte], len(batch))
	for i, l := range batch {
		messages[i] = xstreamq.Outgoing[[]byte]{Body: l.body, Options: s.options}
	}
	results := s.queue.PublishBatch(ctx, messages)
	for i, r := range results {
		if r.Err == nil {
			s.stored++
			s.ids.add(r.ID, batch[i].number)
		}
	}
	unprinted := s.ids.flush()
	s.last = batch[len(batch)-1].number
	if err := s.shortfall(batch, results); err != nil {
		return err
	}
	if unprinted != nil {
		// Not wrapped: a closed pipe ends a command without a word.
		return errors.New(s.soFar() + ", up to line " + strconv.Itoa(s.last) + ", but not all ids are printed: " + unprinted.Error())
	}
	return nil
}

func (s *lineSender) soFar() string { return "stored " + plural(s.stored, "message", "messages") }

// shortfall says exactly which lines of a batch were not stored, or may not have been; nil when all were.
func (s *lineSender) shortfall(batch []line, results []xstreamq.PublishResult) error {
	first, stored, unsure, refused := -1, 0, 0, 0
	for i, r := range results {
		switch {
		case r.Err == nil && first < 0:
			continue
		case r.Err == nil:
			stored++
		case errors.Is(r.Err, xstreamq.ErrPublishUncertain):
			unsure++
		default:
			refused++
		}
		if first < 0 {
			first = i
		}
	}
	if first < 0 {
		return nil
	}
	where, verb := fmt.Sprintf("line %d", batch[first].number), "was not stored"
	rest := len(batch) - first - 1
	alike := rest > 0 && (unsure == rest+1 || refused == rest+1)
	if alike {
		where, verb = fmt.Sprintf("lines %d to %d", batch[first].number, s.last), "were not stored"
	}
	if errors.Is(results[first].Err, xstreamq.ErrPublishUncertain) {
		verb = "may have been stored or not"
	}
	var others string
	if rest > 0 && !alike {
		others = fmt.Sprintf(", of the %d lines sent after it %s", rest, tally(stored, results[first].Err, unsure, refused))
	}
	return fmt.Errorf("%s; %s %s%s, and nothing after line %d was sent: %w", s.soFar(), where, verb, others, s.last, results[first].Err)
}

// tally says what became of lines: those counted, less the first one, which failed with an error.
func tally(stored int, first error, unsure, refused int) string {
	if errors.Is(first, xstreamq.ErrPublishUncertain) {
		unsure--
	} else {
		refused--
	}
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{{stored, "were stored"}, {unsure, "may have been"}, {refused, "were not"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	return strings.Join(parts, ", ")
}

// idPrinter prints the ids of what was stored, one on each line.
type idPrinter struct {
	to   *bufio.Writer
	json bool
}

// publishedRow is an id for --json.
type publishedRow struct {
	ID   string `json:"id"`
	Line int    `json:"line,omitempty"`
}

func (a *app) newIDPrinter() *idPrinter { return &idPrinter{to: bufio.NewWriter(a.out), json: a.json} }

// add prints an id, and the line of the input that it was given to; 0 where there are no lines. Its error is that of the next flush.
func (p *idPrinter) add(id string, line int) {
	if p.json {
		_ = json.NewEncoder(p.to).Encode(publishedRow{id, line})
		return
	}
	_, _ = fmt.Fprintln(p.to, id)
}

// flush returns the first error there was.
func (p *idPrinter) flush() error { return p.to.Flush() }
