package peer

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"
)

// system is how one of the compared systems is run.
type system struct {
	batch    int // messages of one call of its producer
	producer func(ctx context.Context, url string, callers int) (put store, closing func(), err error)
	worker   func(ctx context.Context, url string, handle func(body []byte)) (stop func(), err error)
}

var systems = map[string]system{
	"xstreamq":       {1, xstreamqProducer, xstreamqWorker(0)},
	"xstreamq-batch": {batchSize, xstreamqBatchProducer, xstreamqWorker(0)},
	"xstreamq-ahead": {1, xstreamqProducer, xstreamqWorker(512)},
	"asynq":          {1, asynqProducer, asynqWorker},
	"watermill":      {1, watermillProducer, watermillWorker},
	"bare":           {1, bareProducer, bareWorker},
}

// Systems of this package, beside which there are those of node/.
func Systems() []string {
	names := make([]string, 0, len(systems))
	for name := range systems {
		names = append(names, name)
	}
	return names
}

// Role of a child.
const (
	Producer = "producer"
	Worker   = "worker"
)

// Main is a whole child process: its arguments are a system, a role, the URL of a server, and how many callers a producer will have.
func Main(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	if len(args) != 4 {
		return fmt.Errorf("%d arguments: want a system, a role, a URL and a number of callers", len(args))
	}
	callers, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	if err := Serve(ctx, args[0], args[1], args[2], callers, in, out); err != nil {
		return json.NewEncoder(out).Encode(Event{Kind: Failed, Error: err.Error()}) // the parent reports it
	}
	return nil
}

// Serve is the life of one child: it connects, says that it is ready, and obeys until its input ends.
func Serve(ctx context.Context, name, role, url string, callers int, in io.Reader, out io.Writer) error {
	s, ok := systems[name]
	if !ok {
		return fmt.Errorf("there is no system %q", name)
	}
	child := &child{system: s, url: url, in: bufio.NewScanner(in), out: json.NewEncoder(out)}
	switch role {
	case Producer:
		return child.produce(ctx, callers)
	case Worker:
		return child.work(ctx)
	}
	return fmt.Errorf("there is no role %q", role)
}

type child struct {
	system system
	url    string
	in     *bufio.Scanner
	mu     sync.Mutex // of out
	out    *json.Encoder
}

func (c *child) say(e Event) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.Encode(e)
}

func (c *child) next() (cmd Command, more bool, err error) {
	if !c.in.Scan() {
		return cmd, false, c.in.Err()
	}
	return cmd, true, json.Unmarshal(c.in.Bytes(), &cmd)
}

func (c *child) produce(ctx context.Context, callers int) error {
	put, closing, err := c.system.producer(ctx, c.url, callers)
	if err != nil {
		return err
	}
	defer closing()
	if err := c.say(Event{Kind: Ready}); err != nil {
		return err
	}
	for {
		cmd, more, err := c.next()
		if err != nil || !more {
			return err
		}
		var e Event
		switch cmd.Op {
		case Publish:
			e, err = publish(ctx, put, cmd.Messages, c.system.batch, cmd.Callers)
		case Pace:
			e, err = pace(ctx, put, cmd.Messages, cmd.Rate, cmd.Callers)
		default:
			err = fmt.Errorf("a producer does not %q", cmd.Op)
		}
		if err != nil {
			return err
		}
		if err := c.say(e); err != nil {
			return err
		}
	}
}

// work waits for its first command before it reads anything, so that starting a process is no part of what is timed.
func (c *child) work(ctx context.Context) error {
	if err := c.say(Event{Kind: Ready}); err != nil {
		return err
	}
	cmd, more, err := c.next()
	if err != nil || !more {
		return err
	}
	t := newTally(cmd.Messages)
	stop, err := c.system.worker(ctx, c.url, t.handle)
	if err != nil {
		return err
	}
	defer stop()
	if err := c.say(Event{Kind: Ready}); err != nil {
		return err
	}
	quit := make(chan struct{})
	var reporter sync.WaitGroup
	reporter.Go(func() { c.report(t, quit) })
	defer reporter.Wait()
	defer close(quit)
	for {
		_, more, err := c.next()
		if err != nil || !more {
			return err
		}
		if err := c.say(t.event()); err != nil {
			return err
		}
	}
}

// report says how much was handled, when that has changed.
func (c *child) report(t *tally, quit <-chan struct{}) {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for said := int64(0); ; {
		select {
		case <-quit:
			return
		case <-ticker.C:
		}
		if n := t.handled.Load(); n != said {
			said = n
			if c.say(Event{Kind: Progress, Handled: n}) != nil {
				return
			}
		}
	}
}
