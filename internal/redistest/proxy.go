package redistest

import (
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
	l := newLink(p, conn.(*net.TCPConn))
	p.links[l] = struct{}{}
	p.wg.Go(l.serve)
}

func (p *Proxy) forget(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}
