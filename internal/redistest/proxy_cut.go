package redistest

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
)

// Cut says where a connection breaks off around one request.
type Cut int

const (
	// BeforeRequest keeps the request from the server.
	BeforeRequest Cut = iota
	// AfterRequest lets the server execute the request, and closes the connection before any reply.
	AfterRequest
	// WithinReply closes the connection after half of the bytes of the reply.
	WithinReply
	// AfterReply closes the connection right after the reply.
	AfterReply
	// SwallowReply leaves the connection open. It carries requests still, and no reply any more: neither this one nor a later
	// one. It is closed when the proxy is told to Pass.
	SwallowReply
)

// CutAt cuts one connection once, at the next request that contains all the parts (any request, if there are none). The
// channel is closed when that is done. The last three cuts pick the reply of that very request, for which its connection
// must be allowed to ECHO; with the first two, requests that a client sent together, in one packet, share the fate.
func (p *Proxy) CutAt(cut Cut, parts ...string) <-chan struct{} {
	t := &trap{parts: slices.Clone(parts), cut: cut, fired: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.traps = append(p.traps, t)
	return t.fired
}

// CutAfterRequest is CutAt with AfterRequest.
func (p *Proxy) CutAfterRequest(match []byte) <-chan struct{} {
	return p.CutAt(AfterRequest, string(match))
}

// CutBeforeRequest is CutAt with BeforeRequest.
func (p *Proxy) CutBeforeRequest(match []byte) <-chan struct{} {
	return p.CutAt(BeforeRequest, string(match))
}

// trap is a one-shot fault that a request sets off.
type trap struct {
	parts []string
	cut   Cut
	fired chan struct{}
}

// springs reports whether a request sets the trap off.
func (t *trap) springs(request []byte) bool {
	return !slices.ContainsFunc(t.parts, func(part string) bool { return !bytes.Contains(request, []byte(part)) })
}

// whole returns the length of the whole requests at the beginning of data, up to and with the first one that sets off a trap. That
// one is taken away and returned. What is opaque is one request.
func (p *Proxy) whole(data []byte, opaque bool) (done int, _ *trap) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for done < len(data) {
		n := len(data)
		if !opaque {
			n = requestLen(data[done:])
		}
		if n == 0 {
			break
		}
		request := data[done : done+n]
		done += n
		for i, t := range p.traps {
			if opaque && t.cut > AfterRequest {
				continue // the reply cannot be told
			}
			if t.springs(request) {
				p.traps = slices.Delete(p.traps, i, i+1)
				return done, t
			}
		}
	}
	return done, nil
}

// isOpaque reports that a connection which begins like this carries no requests in the clear: TLS, for one.
func isOpaque(data []byte) bool {
	first := data[0] | 0x20 // letters begin an inline command
	return data[0] != '*' && (first < 'a' || first > 'z')
}

// lastRequest is where the last of the requests begins.
func lastRequest(requests []byte) int {
	at := 0
	for {
		n := requestLen(requests[at:])
		if at+n == len(requests) {
			return at
		}
		at += n
	}
}

// requestLen is the length of the first request, or 0 when it has not come whole yet. What is none counts as one request.
func requestLen(data []byte) int {
	line, at := lineOf(data)
	if at == 0 || len(line) == 0 || line[0] != '*' {
		return at // incomplete, or an inline command
	}
	words, err := strconv.Atoi(string(line[1:]))
	if err != nil {
		return len(data)
	}
	for range words {
		line, n := lineOf(data[at:])
		if n == 0 {
			return 0
		}
		size := -1
		if len(line) > 0 && line[0] == '$' {
			size, err = strconv.Atoi(string(line[1:]))
		}
		if size < 0 || err != nil {
			return len(data)
		}
		if at += n + size + len("\r\n"); at > len(data) {
			return 0
		}
	}
	return at
}

// lineOf returns the first line without its end, and its length with it; 0 when it has not come whole yet.
func lineOf(data []byte) (line []byte, n int) {
	end := bytes.IndexByte(data, '\n')
	return bytes.TrimSuffix(data[:max(end, 0)], []byte("\r")), end + 1
}

// catch picks the reply to one request out of what a server sends: it stands between the replies to two markers.
type catch struct {
	trap        *trap
	front, rear []byte // replies to the markers
	held        []byte
	begun       bool
}

// between returns requests to send, with markers around the one whose reply is to be caught.
func (l *link) between(t *trap, before, request []byte) []byte {
	front, rear := rand.Text(), rand.Text()
	l.proxy.mu.Lock()
	defer l.proxy.mu.Unlock()
	l.catch = &catch{trap: t, front: bulk(front), rear: bulk(rear)}
	l.outOfStep = t.cut == SwallowReply
	return slices.Concat(before, echo(front), request, echo(rear))
}

func (l *link) caught() *catch {
	l.proxy.mu.Lock()
	defer l.proxy.mu.Unlock()
	return l.catch
}

func bulk(s string) []byte { return fmt.Appendf(nil, "$%d\r\n%s\r\n", len(s), s) }

func echo(s string) []byte { return slices.Concat([]byte("*2\r\n$4\r\nECHO\r\n"), bulk(s)) }

// take returns what the client gets of data; done, when that ends with what it gets of the caught reply.
func (c *catch) take(data []byte) (pass []byte, done bool) {
	c.held = append(c.held, data...)
	if !c.begun {
		if pass, c.held, c.begun = bytes.Cut(c.held, c.front); !c.begun {
			c.held = pass
			return nil, false
		}
	}
	reply, _, done := bytes.Cut(c.held, c.rear)
	if !done {
		return pass, false
	}
	switch c.trap.cut {
	case WithinReply:
		reply = reply[:len(reply)/2]
	case SwallowReply:
		reply = nil
	case BeforeRequest, AfterRequest, AfterReply:
	}
	return slices.Concat(pass, reply), true
}
