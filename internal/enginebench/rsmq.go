package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/xstreamq/xstreamq/rsmq"
)

// rsmqCase is one way to use an RSMQ queue, from so many callers at once.
type rsmqCase struct {
	op      string // as the Node benchmark calls it, which has no batches
	callers int
	batch   int // messages per call
	wants   float64
}

// rsmqMany is how many callers there are in the cases that have marks: a single caller waits for the network, and so does Redis.
const rsmqMany = 64

// rsmqCases are compared with Node's figures for the same operation and callers; a batch with those of rsmqMany single callers. wants is the least
// ratio of messages per second.
var rsmqCases = []rsmqCase{
	{op: "send", callers: 1}, {op: "receive", callers: 1}, {op: "pop", callers: 1},
	{op: "send", callers: rsmqMany}, {op: "receive", callers: rsmqMany, wants: 1.5}, {op: "pop", callers: rsmqMany},
	{op: "send", callers: 4, batch: 100}, {op: "receive", callers: 4, batch: 100, wants: 3}, {op: "pop", callers: 4, batch: 100},
}

// rsmqCPU is the most of Node's Redis CPU per message that is accepted with many callers, or in batches.
const rsmqCPU = 0.8

func (c rsmqCase) String() string {
	name := map[string]string{"send": "send", "receive": "receive+delete", "pop": "pop"}[c.op]
	switch {
	case c.batch > 0:
		return fmt.Sprintf("%s, %d callers, batches of %d", name, c.callers, c.batch)
	case c.callers == 1:
		return name + ", 1 caller"
	}
	return fmt.Sprintf("%s, %d callers", name, c.callers)
}

// rsmqFigures are what a case measured, one of each per round.
type rsmqFigures struct{ rate, cpu []float64 }

func (f *rsmqFigures) add(n int, t timed) {
	f.rate = append(f.rate, float64(n)/t.wall.Seconds())
	f.cpu = append(f.cpu, t.redis.Seconds()*1e6/float64(n))
}

// rsmq compares the client with the Node package, where that is at hand.
func (b *bench) rsmq(ctx context.Context) ([]measurement, error) {
	node, err := startNode(ctx, b.url)
	if err == nil {
		defer node.close()
	} else {
		fmt.Fprintln(os.Stderr, "enginebench: RSMQ WITHOUT its Node package to compare with:", err)
	}
	client, err := rsmq.Open(b.url, rsmq.Config{})
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ours, theirs := map[rsmqCase]*rsmqFigures{}, map[rsmqCase]*rsmqFigures{}
	for range b.rounds {
		for _, c := range rsmqCases {
			if node != nil && c.batch == 0 {
				if err := b.rsmqRound(ctx, client, c, theirs, func(n int) error { return node.run(c, n) }); err != nil {
					return nil, fmt.Errorf("node: %s: %w", c, err)
				}
			}
			if err := b.rsmqRound(ctx, client, c, ours, func(n int) error { return rsmqRun(ctx, client, c, n) }); err != nil {
				return nil, fmt.Errorf("%s: %w", c, err)
			}
		}
	}
	var ms []measurement
	for _, c := range rsmqCases {
		ms = append(ms, rsmqMeasurements(c, ours[c], theirs)...)
	}
	return ms, nil
}

// rsmqRound times one run on a queue that holds what it takes.
func (b *bench) rsmqRound(ctx context.Context, client *rsmq.Client, c rsmqCase, into map[rsmqCase]*rsmqFigures, run func(n int) error) error {
	n := b.n / 10
	if c.callers == 1 {
		n /= 4
	}
	if err := b.flush(ctx); err != nil {
		return err
	}
	if err := client.CreateQueue(ctx, queue, rsmq.QueueOptions{}); err != nil {
		return err
	}
	if c.op != "send" {
		if err := rsmqRun(ctx, client, rsmqCase{op: "send", callers: 4, batch: 100}, n); err != nil {
			return err
		}
	}
	t, err := b.timed(ctx, func() error { return run(n) })
	if err != nil {
		return err
	}
	if into[c] == nil {
		into[c] = &rsmqFigures{}
	}
	into[c].add(n, t)
	return nil
}

// rsmqMeasurements are the lines of a case. theirs are Node's figures, by case.
func rsmqMeasurements(c rsmqCase, ours *rsmqFigures, theirs map[rsmqCase]*rsmqFigures) []measurement {
	name := "rsmq " + c.String()
	ms := []measurement{
		{name, spread("%.0f/s", ours.rate), "", true},
		{name + ": Redis CPU", spread("%.1f us", ours.cpu) + fmt.Sprintf(", so at most %.0f/s", 1e6/median(ours.cpu)), "", true},
	}
	node := theirs[c.peer()]
	if node == nil {
		return ms
	}
	if c.batch == 0 {
		ms = append(ms,
			measurement{name + ": Node", spread("%.0f/s", node.rate), "", true},
			measurement{name + ": Node, Redis CPU", spread("%.1f us", node.cpu), "", true})
	}
	rate, cpu := make([]float64, len(ours.rate)), make([]float64, len(ours.rate))
	for i := range rate {
		rate[i], cpu[i] = ours.rate[i]/node.rate[i], ours.cpu[i]/node.cpu[i]
	}
	rateMark, cpuMark, cheap := "", "", true
	if c.wants > 0 {
		rateMark = fmt.Sprintf(">= %.1f", c.wants)
	}
	if c.callers == rsmqMany || c.batch > 0 {
		cpuMark, cheap = fmt.Sprintf("<= %.1f", rsmqCPU), median(cpu) <= rsmqCPU
	}
	return append(ms,
		measurement{name + ": messages / Node", spread("%.2f", rate), rateMark, median(rate) >= c.wants},
		measurement{name + ": Redis CPU / Node", spread("%.2f", cpu), cpuMark, cheap})
}

// peer is the case of Node that a case is compared with.
func (c rsmqCase) peer() rsmqCase {
	for _, p := range rsmqCases {
		if p.op == c.op && p.batch == 0 && (p == c || c.batch > 0 && p.callers == rsmqMany) {
			return p
		}
	}
	return c
}

// rsmqRun does a case's operation n times.
func rsmqRun(ctx context.Context, client *rsmq.Client, c rsmqCase, n int) error {
	var left atomic.Int64
	left.Store(int64(n))
	var wg sync.WaitGroup
	errs := make([]error, c.callers)
	for i := range c.callers {
		wg.Go(func() {
			step := int64(max(c.batch, 1))
			for errs[i] == nil {
				if rest := left.Add(-step); rest <= -step {
					return
				}
				errs[i] = rsmqStep(ctx, client, c)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

var errShort = errors.New("the queue gave fewer messages than it held")

// rsmqStep sends or takes one message, or one batch.
func rsmqStep(ctx context.Context, client *rsmq.Client, c rsmqCase) error {
	body := string(body())
	switch {
	case c.op == "send" && c.batch == 0:
		_, err := client.SendMessage(ctx, queue, body, rsmq.SendOptions{})
		return err
	case c.op == "send":
		_, err := client.SendMessages(ctx, queue, slices.Repeat([]string{body}, c.batch), rsmq.SendOptions{})
		return err
	case c.op == "pop" && c.batch == 0:
		_, ok, err := client.PopMessage(ctx, queue)
		return gave(ok, err)
	case c.op == "pop":
		ms, err := client.PopMessages(ctx, queue, c.batch)
		return gave(len(ms) == c.batch, err)
	case c.batch == 0:
		m, ok, err := client.ReceiveMessage(ctx, queue, rsmq.ReceiveOptions{})
		if err != nil || !ok {
			return gave(ok, err)
		}
		ok, err = client.DeleteMessage(ctx, queue, m.ID)
		return gave(ok, err)
	}
	ms, err := client.ReceiveMessages(ctx, queue, c.batch, rsmq.ReceiveOptions{})
	if err != nil || len(ms) < c.batch {
		return gave(false, err)
	}
	ids := make([]string, len(ms))
	for i := range ms {
		ids[i] = ms[i].ID
	}
	_, err = client.DeleteMessages(ctx, queue, ids)
	return err
}

func gave(ok bool, err error) error {
	if err == nil && !ok {
		return errShort
	}
	return err
}
