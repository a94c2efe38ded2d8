package demo

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/keys"
)

const (
	doomedName = "worker-4"
	// doomedStart is how long the process may take until both its handlers run.
	doomedStart = 10 * time.Second
	// doomedPrefetch is what it reads ahead, besides the one message that its handler has.
	doomedPrefetch = 3
)

// job tells the doomed worker what to do. It goes through a pipe: a command line could be read by others, password included.
type job struct {
	URL    string `json:"url"`
	Prefix string `json:"prefix"`
}

// inHandler is what the doomed worker reports when a handler has begun.
type inHandler struct {
	Group string `json:"group"`
	ID    string `json:"id"`
}

// doomed is a worker in a process of its own, which takes messages, never finishes one, and is killed. Nothing short of a
// killed process is a worker that dies: one that is merely stopped gives its messages back.
type doomed struct {
	process *exec.Cmd
	held    int // messages
}

// startDoomed starts the process and waits until a handler of each group is at work in it.
func (r *run) startDoomed(ctx context.Context) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program, to run it as a worker: %w", err)
	}
	var complaints bytes.Buffer
	process := exec.CommandContext(ctx, program, "demo-worker")
	process.Stderr = &complaints
	input, err := process.StdinPipe()
	if err != nil {
		return err
	}
	output, err := process.StdoutPipe()
	if err != nil {
		return err
	}
	if err := process.Start(); err != nil {
		return fmt.Errorf("start %s: %w", doomedName, err)
	}
	r.doomed = &doomed{process: process}
	if err := json.NewEncoder(input).Encode(job{r.url, r.prefix}); err != nil {
		return fmt.Errorf("start %s: %w", doomedName, err)
	}
	giveUp := time.AfterFunc(doomedStart, func() { _ = process.Process.Kill() })
	defer giveUp.Stop()
	lines := bufio.NewScanner(output)
	for range groups {
		if !lines.Scan() {
			r.doomed.kill()
			return fmt.Errorf("%s took no message: %s", doomedName, bytes.TrimSpace(complaints.Bytes()))
		}
	}
	if r.doomed.held, err = r.pendingNow(ctx); err != nil {
		return err
	}
	r.progress.Say("started %s, process %d: it holds %d messages, and a handler of each group is at work",
		doomedName, process.Process.Pid, r.doomed.held)
	return nil
}

// pendingNow counts what workers hold, of all groups together. While the doomed worker is the only one, that is what it holds.
func (r *run) pendingNow(ctx context.Context) (int, error) {
	held := 0
	for _, g := range groups {
		n, err := pending(ctx, r.redis, keys.ForQueue(r.prefix, queueName).Queue, g.name)
		if err != nil {
			return 0, err
		}
		held += int(n)
	}
	return held, nil
}

// kill ends the process as kill -9 does. Safe more than once.
func (d *doomed) kill() {
	_ = d.process.Process.Kill() // it may have ended by itself
	_ = d.process.Wait()         // "killed" is what was wanted
}

// RunDoomed is the doomed worker: it reads its job from in, takes messages, reports to out each handler that begins, and
// waits to be killed. When in ends the process that started it is gone, and it stops.
func RunDoomed(ctx context.Context, in io.Reader, out io.Writer) error {
	var j job
	input := json.NewDecoder(in)
	if err := input.Decode(&j); err != nil {
		return fmt.Errorf("this command is run by demo, which tells it what to do: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, in) // any end will do
		cancel()
	}()
	client, err := xstreamq.Open(j.URL, xstreamq.Config{KeyPrefix: j.Prefix, ConsumerName: doomedName, DrainTimeout: drainTime})
	if err != nil {
		return err
	}
	defer client.Close()
	queue, err := xstreamq.NewQueue[webhook](client, queueName)
	if err != nil {
		return err
	}
	reports := make(chan inHandler)
	for _, g := range groups {
		if _, err := queue.Subscribe(g.name, neverDone(ctx, reports), subscribeOptions(1, doomedPrefetch)); err != nil {
			return err
		}
	}
	go report(ctx, reports, out)
	return client.Run(ctx)
}

// neverDone is a handler that reports its message and works on it until the process ends.
func neverDone(stop context.Context, reports chan<- inHandler) xstreamq.Handler[webhook] {
	return func(ctx context.Context, m *xstreamq.Message[webhook]) error {
		select {
		case reports <- inHandler{m.Group, m.OriginalID}:
		case <-stop.Done():
		}
		<-xstreamq.Draining(ctx)
		return xstreamq.Release(context.Cause(stop))
	}
}

func report(ctx context.Context, reports <-chan inHandler, out io.Writer) {
	for encoder := json.NewEncoder(out); ; {
		select {
		case r := <-reports:
			_ = encoder.Encode(r) // a reader that is gone ends this process by its own way
		case <-ctx.Done():
			return
		}
	}
}
