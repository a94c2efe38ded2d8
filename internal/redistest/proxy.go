package redistest

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"
)

// mode is what a proxy does with the bytes of all its connections.
type mode int

const (
	passing mode = iota
	refusing
	blackHoling
	swallowing
)

// Proxy is a bad network in front of a Redis server: a TCP proxy on 127.0.0.1 whose faults are switched while
// connections live. It passes everything at first. Its methods may be called from several goroutines.
type Proxy struct {
	listener net.Listener
	target   string // host:port
	url      string
	wg       sync.WaitGroup

	mu      sync.Mutex
	mode    mode
	delay   time.Duration
	changed chan struct{} // closed, and replaced, whenever mode or delay changes
	closed  bool
	links   map[*link]struct{}
	traps   []*trap
}

// trap is a one-shot fault that a request sets off.
type trap struct {
	match   []byte
	forward bool // the request still reaches the server
	fired   chan struct{}
}

// NewProxy puts a proxy before target, a host:port or a redis:// URL, and closes it at the end of the test.
func NewProxy(tb testing.TB, target string) *Proxy {
	tb.Helper()
	p, err := ListenProxy(target)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.Close)
	return p
}

// ListenProxy is NewProxy without a test: the caller has to Close the proxy.
func ListenProxy(target string) (*Proxy, error) {
	address, err := url.Parse(target)
	if err != nil || address.Host == "" {
		address = &url.URL{Scheme: "redis", Host: target}
	}
	if address.Scheme != "redis" {
		return nil, fmt.Errorf("redistest: a proxy reads plain TCP, not %s; use a redis:// server", address.Scheme)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("redistest: listen for the proxy: %w", err)
	}
	p := &Proxy{
		listener: listener,
		target:   address.Host,
		changed:  make(chan struct{}),
		links:    make(map[*link]struct{}),
	}
	address.Host = p.Addr()
	p.url = address.String()
	p.wg.Go(p.accept)
	return p, nil
}

// Addr is the proxy's own host:port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// URL is the target's URL with the proxy's address in place of the server's.
func (p *Proxy) URL() string { return p.url }

// Pass ends any fault: bytes flow both ways. What a black hole held back flows now.
func (p *Proxy) Pass() { p.change(passing, 0) }

// Delay passes everything, each reply at least d after the server sent it.
func (p *Proxy) Delay(d time.Duration) { p.change(passing, d) }

// BlackHole keeps connections open and carries nothing either way. New connections are accepted and get no answer.
func (p *Proxy) BlackHole() { p.change(blackHoling, 0) }

// SwallowReplies carries requests to the server and throws its replies away. A connection that missed a reply is out
// of step, so it is closed when the proxy leaves this mode.
func (p *Proxy) SwallowReplies() { p.change(swallowing, 0) }

// Refuse closes all connections, and each new one as soon as it is accepted.
func (p *Proxy) Refuse() {
	p.change(refusing, 0)
	p.Cut()
}

// Cut closes all connections now and leaves the mode as it is, so that (unless it refuses) new ones are served.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.close()
	}
}

// CutAfterRequest cuts one connection once: the next request that contains match (any request, if match is empty)
// reaches the server and is executed, then the connection is closed and the reply is lost. The channel is closed when
// that is done. Requests that a client sent together, in one packet, share the fate.
func (p *Proxy) CutAfterRequest(match []byte) <-chan struct{} { return p.arm(match, true) }

// CutBeforeRequest is CutAfterRequest with the connection closed before the server sees the request.
func (p *Proxy) CutBeforeRequest(match []byte) <-chan struct{} { return p.arm(match, false) }

// Close cuts all connections, frees the port and returns when every goroutine of the proxy has ended.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	_ = p.listener.Close() // the second Close of a listener says that it is closed
	p.Cut()
	p.wg.Wait()
}

func (p *Proxy) change(m mode, delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mode, p.delay = m, delay
	close(p.changed)
	p.changed = make(chan struct{})
	for l := range p.links {
		if l.outOfStep && m != swallowing {
			l.close()
		}
	}
}

func (p *Proxy) arm(match []byte, forward bool) <-chan struct{} {
	t := &trap{match: bytes.Clone(match), forward: forward, fired: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.traps = append(p.traps, t)
	return t.fired
}

// spring returns the first trap that the request sets off, and takes it away. The first seen bytes of request have
// been looked at before.
func (p *Proxy) spring(request []byte, seen int) *trap {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, t := range p.traps {
		if bytes.Contains(request[max(0, seen-max(0, len(t.match)-1)):], t.match) {
			p.traps = append(p.traps[:i], p.traps[i+1:]...)
			return t
		}
	}
	return nil
}

func (p *Proxy) accept() {
	for {
		conn, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // the client gave up before it was accepted
		}
		p.welcome(conn)
	}
}

func (p *Proxy) welcome(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.mode == refusing {
		_ = conn.Close()
		return
	}
	l := newLink(p, conn)
	p.links[l] = struct{}{}
	p.wg.Go(l.serve)
}

func (p *Proxy) forget(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}
