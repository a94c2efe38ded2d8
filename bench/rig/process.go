package rig

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/xstreamq/xstreamq/bench/peer"
)

// endWithin is how long a child may take to end once its input has.
const endWithin = 20 * time.Second

// process is one child: a producer or a worker of one system.
type process struct {
	name    string
	role    string
	cmd     *exec.Cmd
	in      io.WriteCloser
	events  chan peer.Event // closed when the child has closed its output
	handled atomic.Int64    // by its latest report of progress
	failed  atomic.Bool     // events tells why
	used    usage           // when it was ready
}

// startProcess returns when the child is ready. The child is killed when ctx ends.
func (r *Rig) startProcess(ctx context.Context, s System, role, redisURL string, callers int) (*process, error) {
	cmd, err := r.command(ctx, s, role, redisURL, callers)
	if err != nil {
		return nil, err
	}
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a %s of %s: %w", role, s.Name, err)
	}
	p := &process{name: s.Name + " " + role, role: role, cmd: cmd, in: in, events: make(chan peer.Event, 16)}
	go p.read(out)
	if _, err := p.await(ctx, peer.Ready); err != nil {
		p.kill()
		return nil, err
	}
	p.used, err = p.usage()
	return p, err
}

func (r *Rig) command(ctx context.Context, s System, role, redisURL string, callers int) (*exec.Cmd, error) {
	if !s.Node {
		words := slices.Concat(r.Child, []string{s.Name, role, redisURL, strconv.Itoa(callers)})
		return exec.CommandContext(ctx, words[0], words[1:]...), nil
	}
	u, err := url.Parse(redisURL)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "node", filepath.Join(r.nodeSource, "child.js"), s.Name, role, u.Hostname(), u.Port(), strconv.Itoa(callers))
	cmd.Env = append(os.Environ(), "NODE_PATH="+filepath.Join(r.NodeDir, "node_modules"), "NODE_ENV=production")
	return cmd, nil
}

func (p *process) read(out io.Reader) {
	defer close(p.events)
	defer p.failed.Store(true)
	for decoder := json.NewDecoder(bufio.NewReaderSize(out, 1<<20)); ; {
		var e peer.Event
		if err := decoder.Decode(&e); err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrClosed) {
				p.events <- peer.Event{Kind: peer.Failed, Error: err.Error()}
			}
			return
		}
		if e.Kind == peer.Progress {
			p.handled.Store(e.Handled)
			continue
		}
		if e.Kind == peer.Failed {
			p.failed.Store(true)
		}
		p.events <- e
	}
}

func (p *process) tell(cmd peer.Command) error {
	if err := json.NewEncoder(p.in).Encode(cmd); err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	return nil
}

// await returns the next event of a kind.
func (p *process) await(ctx context.Context, kind string) (peer.Event, error) {
	for {
		select {
		case e, open := <-p.events:
			switch {
			case !open:
				return e, fmt.Errorf("%s: it ended early", p.name)
			case e.Kind == peer.Failed:
				return e, fmt.Errorf("%s: %s", p.name, e.Error)
			case e.Kind != kind:
				return e, fmt.Errorf("%s: it said %q, not %q", p.name, e.Kind, kind)
			}
			return e, nil
		case <-ctx.Done():
			return peer.Event{}, fmt.Errorf("%s: waiting for %q: %w", p.name, kind, context.Cause(ctx))
		}
	}
}

// since is what the child has used since it was ready.
func (p *process) since() (usage, error) {
	now, err := p.usage()
	now.cpu -= p.used.cpu
	return now, err
}

func (p *process) usage() (usage, error) {
	u, err := readUsage(p.cmd.Process.Pid)
	if err != nil {
		return u, fmt.Errorf("%s: %w", p.name, err)
	}
	return u, nil
}

// end closes the child's input, which it obeys by ending, and waits for that.
func (p *process) end() {
	_ = p.in.Close()
	timer := time.AfterFunc(endWithin, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	for range p.events {
	}
	_ = p.cmd.Wait() // what it did was checked before
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	p.end()
}
