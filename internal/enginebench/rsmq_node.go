package main

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
	"strconv"
)

// nodeEnv names a folder whose node_modules hold the Node package rsmq; scripts/node.sh makes one.
const nodeEnv = "XSTREAMQ_NODE_DIR"

// node is the process of bench/rsmq-node.
type node struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func startNode(ctx context.Context, redisURL string) (*node, error) {
	dir := os.Getenv(nodeEnv)
	if dir == "" {
		return nil, fmt.Errorf("%s is not set: `make bench` sets it where there is Node", nodeEnv)
	}
	u, err := url.Parse(redisURL)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "node", "bench/rsmq-node/bench.js", u.Hostname(), u.Port(), queue, strconv.Itoa(bodySize))
	cmd.Env = append(os.Environ(), "NODE_PATH="+filepath.Join(dir, "node_modules"))
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
		return nil, err
	}
	return &node{cmd, in, bufio.NewScanner(out)}, nil
}

// run has the process do a case's operation n times.
func (p *node) run(c rsmqCase, n int) error {
	if _, err := fmt.Fprintf(p.in, `{"op":%q,"callers":%d,"messages":%d}`+"\n", c.op, c.callers, n); err != nil {
		return err
	}
	if !p.out.Scan() {
		return errors.Join(errors.New("it ended"), p.out.Err())
	}
	var answer struct {
		Messages int    `json:"messages"`
		Error    string `json:"error"`
	}
	if err := json.Unmarshal(p.out.Bytes(), &answer); err != nil {
		return err
	}
	if answer.Error != "" || answer.Messages != n {
		return fmt.Errorf("it did %d of %d: %s", answer.Messages, n, answer.Error)
	}
	return nil
}

// close ends the process with its input.
func (p *node) close() {
	_ = p.in.Close()
	_ = p.cmd.Wait()
}
