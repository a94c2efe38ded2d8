package redistest

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	dialTimeout  = 5 * time.Second
	requestChunk = 64 << 10
	replyChunk   = 32 << 10
	replyQueue   = 256 // chunks on their way, so that a delay does not limit how much flows
)

// link is one connection through a proxy: the client's half and the server's.
type link struct {
	proxy  *Proxy
	client *net.TCPConn

	opaque    bool   // what the client sends are no requests to be read; set by its first bytes
	outOfStep bool   // a reply was swallowed; guarded by proxy.mu
	catch     *catch // of the reply that is cut; guarded by proxy.mu

	parted   atomic.Bool // the client was told the end, and what it still sends is dropped
	muteOnce sync.Once
	muted    chan struct{} // closed: no more replies reach the client

	mu     sync.Mutex
	closed bool
	server net.Conn // nil until the first request may pass
}

// reply is a piece of the server's output and when it came.
type reply struct {
	data []byte
	at   time.Time
	last *trap // the link is cut behind it
}

func newLink(p *Proxy, client *net.TCPConn) *link {
	return &link{proxy: p, client: client, muted: make(chan struct{})}
}

// serve carries the connection until one side ends it.
func (l *link) serve() {
	defer l.proxy.forget(l)
	defer l.close()
	if _, ok := l.admit(time.Time{}); !ok {
		return
	}
	conn, err := net.DialTimeout("tcp", l.proxy.target, dialTimeout)
	if err != nil {
		return // the client sees its connection close, as with a server that is gone
	}
	server := conn.(*net.TCPConn)
	if !l.attach(server) {
		return
	}
	queue := make(chan reply, replyQueue)
	drained := make(chan struct{})
	l.proxy.wg.Go(func() {
		defer close(drained)
		l.readReplies(server, queue)
	})
	l.proxy.wg.Go(func() { l.writeReplies(queue) })
	l.carryRequests(server, drained)
	if l.parted.Load() {
		_, _ = io.Copy(io.Discard, l.client) // until the client ends it, or the proxy
	}
}

// carryRequests forwards what the client sends, request by request, until it is cut or a side ends.
func (l *link) carryRequests(server *net.TCPConn, drained <-chan struct{}) {
	chunk := make([]byte, requestChunk)
	var held []byte // not forwarded yet
	for first := true; ; first = false {
		n, err := l.client.Read(chunk)
		if err != nil {
			return
		}
		if first {
			l.opaque = isOpaque(chunk[:n])
		}
		if _, ok := l.admit(time.Time{}); !ok {
			return
		}
		held = append(held, chunk[:n]...)
		for whole := true; whole; {
			if held, whole = l.forward(held, server, drained); held == nil {
				return
			}
		}
	}
}

// forward sends the whole requests at the beginning of held, up to and with the first that sets off a trap, and returns what is
// left: nil when the link has ended, and whether there may be whole requests in it.
func (l *link) forward(held []byte, server *net.TCPConn, drained <-chan struct{}) (rest []byte, more bool) {
	done, t := l.proxy.whole(held, l.opaque)
	requests := held[:done]
	switch {
	case t == nil:
	case t.cut == BeforeRequest || t.cut == AfterRequest:
		l.sprung(t, requests, server, drained)
		return nil, false
	default:
		last := lastRequest(requests)
		requests = l.between(t, requests[:last], requests[last:])
	}
	if _, err := server.Write(requests); err != nil {
		return nil, false
	}
	return append([]byte{}, held[done:]...), t != nil
}

// sprung cuts the link. For a request that is to be executed it sends the server the end of the input behind it: once
// the server has closed its side in turn, the request is done.
func (l *link) sprung(t *trap, request []byte, server *net.TCPConn, drained <-chan struct{}) {
	if t.cut == AfterRequest {
		l.mute()
		if _, err := server.Write(request); err != nil {
			return
		}
		if err := server.CloseWrite(); err != nil {
			return
		}
		<-drained
	}
	l.close()
	close(t.fired)
}

// readReplies queues what the server sends until it closes its side.
func (l *link) readReplies(server net.Conn, queue chan<- reply) {
	defer close(queue)
	over := false
	for {
		data := make([]byte, replyChunk)
		n, err := server.Read(data)
		if err != nil {
			return
		}
		if over {
			continue
		}
		r := reply{data: data[:n], at: time.Now()}
		if c := l.caught(); c != nil {
			if r.data, over = c.take(r.data); over {
				r.last = c.trap
			}
		}
		select {
		case queue <- r:
		case <-l.muted:
		}
	}
}

// writeReplies hands the replies to the client when the proxy's mode lets them pass.
func (l *link) writeReplies(queue <-chan reply) {
	for r := range queue {
		m, ok := l.admit(r.at)
		if !ok {
			return
		}
		if m == swallowing {
			continue
		}
		if _, err := l.client.Write(r.data); err != nil {
			l.close()
			return
		}
		if r.last != nil {
			if r.last.cut != SwallowReply {
				l.part()
			}
			close(r.last.fired)
		}
	}
	if !l.isMuted() {
		l.close() // the server ended the connection
	}
}

// part ends the connection such that the client reads what it was sent: closed at once, it could fail at its next request before.
func (l *link) part() {
	l.parted.Store(true)
	l.mute()
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.server.Close() // the end of the test may have closed both
	_ = l.client.CloseWrite()
}

// admit waits until bytes that arrived at that time may pass (the zero time: bytes that are not delayed), and returns
// the mode they pass in. It returns false when the link was cut.
func (l *link) admit(at time.Time) (mode, bool) {
	p := l.proxy
	for {
		p.mu.Lock()
		m, changed, wait := p.mode, p.changed, time.Until(at.Add(p.delay))
		if m == swallowing && !at.IsZero() {
			l.outOfStep = true
		}
		p.mu.Unlock()

		if l.isMuted() {
			return m, false
		}
		var due <-chan time.Time
		switch {
		case m == blackHoling:
		case wait > 0 && !at.IsZero():
			due = time.After(wait)
		default:
			return m, true
		}
		select {
		case <-changed:
		case <-due:
		case <-l.muted:
		}
	}
}

func (l *link) mute() { l.muteOnce.Do(func() { close(l.muted) }) }

func (l *link) isMuted() bool {
	select {
	case <-l.muted:
		return true
	default:
		return false
	}
}

// attach hands the server's side over, unless the link has been closed meanwhile.
func (l *link) attach(server net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		_ = server.Close()
		return false
	}
	l.server = server
	return true
}

// close ends both sides. Whoever reads or writes on them notices.
func (l *link) close() {
	l.mute()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.closed = true
	_ = l.client.Close()
	if l.server != nil {
		_ = l.server.Close()
	}
}
