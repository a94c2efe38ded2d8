//go:build interop

package rsmq

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// clockProxy stands before a Redis and answers TIME with a time that the test sets, so that the Node package, unmodified, sees that.
type clockProxy struct {
	listener net.Listener
	target   string
	wg       sync.WaitGroup

	mu    sync.Mutex
	s, us int64
	conns []net.Conn
}

func newClockProxy(t *testing.T, target string) *clockProxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &clockProxy{listener: listener, target: target}
	p.wg.Go(p.accept)
	t.Cleanup(func() {
		listener.Close()
		p.mu.Lock()
		for _, c := range p.conns {
			c.Close()
		}
		p.mu.Unlock()
		p.wg.Wait()
	})
	return p
}

func (p *clockProxy) addr() string { return p.listener.Addr().String() }

func (p *clockProxy) set(s, us int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.s, p.us = s, us
}

// time is the reply to TIME.
func (p *clockProxy) time() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, us := strconv.FormatInt(p.s, 10), strconv.FormatInt(p.us, 10)
	return fmt.Appendf(nil, "*2\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", len(s), s, len(us), us)
}

func (p *clockProxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			client.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, client, server)
		p.mu.Unlock()
		asked := make(chan request, 10000)
		p.wg.Go(func() {
			_ = forward(client, server, asked)
			close(asked)
			server.Close()
		})
		p.wg.Go(func() {
			_ = p.answer(server, client, asked)
			client.Close()
		})
	}
}

// request is what a reply belongs to: TIME, or an EXEC with the places of TIME in its transaction.
type request struct {
	time   bool
	exec   bool
	timeAt map[int]bool
}

// forward passes commands on, and notes what their replies will be.
func forward(client io.Reader, server io.Writer, asked chan<- request) error {
	in := bufio.NewReader(client)
	multi, queued := false, request{}
	count := 0
	for {
		raw, err := readReply(in) // a command is an array of bulk strings
		if err != nil {
			return err
		}
		switch word := firstWord(raw); {
		case word == "MULTI":
			multi, count, queued = true, 0, request{exec: true, timeAt: map[int]bool{}}
			asked <- request{}
		case word == "EXEC":
			multi = false
			asked <- queued
		case multi:
			queued.timeAt[count] = word == "TIME"
			count++
			asked <- request{}
		default:
			asked <- request{time: word == "TIME"}
		}
		if _, err := server.Write(raw); err != nil {
			return err
		}
	}
}

func firstWord(raw []byte) string {
	parts := bytes.SplitN(raw, []byte("\r\n"), 4)
	if len(parts) < 3 {
		return ""
	}
	return strings.ToUpper(string(parts[2]))
}

// answer passes replies on, those of TIME replaced.
func (p *clockProxy) answer(server io.Reader, client io.Writer, asked <-chan request) error {
	in := bufio.NewReader(server)
	for r := range asked {
		raw, err := readReply(in)
		if err != nil {
			return err
		}
		switch {
		case r.time:
			raw = p.time()
		case r.exec && raw[0] == '*':
			if raw, err = p.replaced(raw, r.timeAt); err != nil {
				return err
			}
		}
		if _, err := client.Write(raw); err != nil {
			return err
		}
	}
	return nil
}

// replaced is the reply to an EXEC with another time in it.
func (p *clockProxy) replaced(raw []byte, timeAt map[int]bool) ([]byte, error) {
	in := bufio.NewReader(bytes.NewReader(raw))
	head, err := in.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	out := bytes.Clone(head)
	for i := 0; ; i++ {
		item, err := readReply(in)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		if timeAt[i] {
			item = p.time()
		}
		out = append(out, item...)
	}
}

// readReply reads one RESP2 value, as it stands.
func readReply(in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(line[1:])))
	switch line[0] {
	case '$':
		if n < 0 {
			return line, nil
		}
		body := make([]byte, n+2)
		if _, err := io.ReadFull(in, body); err != nil {
			return nil, err
		}
		return append(line, body...), nil
	case '*':
		for range max(0, n) {
			item, err := readReply(in)
			if err != nil {
				return nil, err
			}
			line = append(line, item...)
		}
	}
	return line, nil
}
