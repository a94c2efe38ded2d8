//go:build interop

package rsmq

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// modulesEnv names the folder that holds node_modules with rsmq, rsmq-old (0.7.2) and rsmq-worker. `make interop` sets it.
const modulesEnv = "XSTREAMQ_NODE_DIR"

// peer is a process of the Node package.
type peer struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader

	mu sync.Mutex
	n  int
}

// answer is a line of the peer's standard output.
type answer struct {
	N          int             `json:"n"`
	Ready      bool            `json:"ready"`
	Result     json.RawMessage `json:"result"`
	Error      *Error          `json:"error"`
	ID         string          `json:"id"`
	RC         int64           `json:"rc"`
	Message    string          `json:"message"`
	Channel    string          `json:"channel"`
	Subscribed bool            `json:"subscribed"`
	Done       bool            `json:"done"`
}

// startPeer starts a process of a package ("rsmq" or "rsmq-old") on the Redis at addr.
func startPeer(t *testing.T, pkg, addr, ns string, realtime bool) *peer {
	t.Helper()
	dir := os.Getenv(modulesEnv)
	if dir == "" {
		t.Fatalf("%s is not set: run make interop", modulesEnv)
	}
	script, err := os.ReadFile("testdata/peer.js")
	if err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"-", pkg, host, port, ns}
	if realtime {
		args = append(args, "realtime")
	}
	// A module is looked for beside the script, so the script has to lie there.
	file, err := os.CreateTemp(dir, "peer-*.js")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(file.Name()) })
	if _, err := file.Write(script); err != nil {
		t.Fatal(err)
	}
	file.Close()
	args[0] = file.Name()
	cmd := exec.Command("node", args...)
	cmd.Dir = dir
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &peer{t: t, cmd: cmd, stdin: stdin, stdout: bufio.NewReaderSize(stdout, 1<<20)}
	t.Cleanup(p.kill)
	if a := p.read(); !a.Ready {
		t.Fatalf("the peer says %+v", a)
	}
	return p
}

// kill ends the process at once.
func (p *peer) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// read returns the next line; at the end of the output an answer that is Done.
func (p *peer) read() answer {
	p.t.Helper()
	line, err := p.stdout.ReadString('\n')
	if err != nil {
		return answer{Done: true}
	}
	var a answer
	if err := json.Unmarshal([]byte(line), &a); err != nil {
		p.t.Fatalf("the peer says %q: %v", line, err)
	}
	return a
}

// tell sends a request, without waiting for an answer.
func (p *peer) tell(op string, args map[string]any) int {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.n++
	if args == nil {
		args = map[string]any{}
	}
	var line strings.Builder
	if err := json.NewEncoder(&line).Encode(map[string]any{"n": p.n, "op": op, "args": args}); err != nil {
		p.t.Fatal(err)
	}
	if _, err := io.WriteString(p.stdin, line.String()); err != nil {
		p.t.Fatal(err)
	}
	return p.n
}

// call makes a call and returns what the callback got.
func (p *peer) call(op string, args map[string]any) (json.RawMessage, *Error) {
	p.t.Helper()
	n := p.tell(op, args)
	a := p.read()
	if a.N != n {
		p.t.Fatalf("the answer to request %d is %+v", n, a)
	}
	return a.Result, a.Error
}

// must is call for what may not fail; into gets the result, unless it is nil.
func (p *peer) must(op string, args map[string]any, into any) {
	p.t.Helper()
	result, failure := p.call(op, args)
	if failure != nil {
		p.t.Fatalf("Node: %s %v: %v", op, args, failure)
	}
	if into != nil {
		if err := json.Unmarshal(result, into); err != nil {
			p.t.Fatalf("Node: %s: %s: %v", op, result, err)
		}
	}
}

// nodeMessage is a message as the Node package gives it.
type nodeMessage struct {
	ID      string  `json:"id"`
	Message *string `json:"message"`
	RC      int64   `json:"rc"`
	FR      int64   `json:"fr"`
	Sent    float64 `json:"sent"`
}
