package xstreamq_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// askedWithin is how long a silent sentinel may hold up a client: a dial of 5s, and as much again for a busy machine.
const askedWithin = 10 * time.Second

// tlsFront speaks TLS to clients, and hands on what they say.
type tlsFront struct {
	net.Listener
	target   string
	accepted atomic.Int32 // connections that got past the handshake

	mu   sync.Mutex
	done bool
	open []net.Conn
	wg   sync.WaitGroup
}

func newTLSFront(t *testing.T, target string) *tlsFront {
	t.Helper()
	issued := httptest.NewTLSServer(nil) // for its certificate
	t.Cleanup(issued.Close)
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &tlsFront{Listener: tls.NewListener(plain, &tls.Config{Certificates: issued.TLS.Certificates}), target: target}
	f.wg.Go(f.accept)
	t.Cleanup(func() {
		_ = f.Close()
		f.mu.Lock()
		f.done = true
		for _, c := range f.open {
			_ = c.Close()
		}
		f.mu.Unlock()
		f.wg.Wait()
	})
	return f
}

func (f *tlsFront) accept() {
	for {
		client, err := f.Accept()
		if err != nil {
			return
		}
		f.wg.Go(func() { f.serve(client) })
	}
}

func (f *tlsFront) serve(client net.Conn) {
	server, err := net.Dial("tcp", f.target)
	if err != nil {
		_ = client.Close()
		return
	}
	f.mu.Lock()
	raw := client.(*tls.Conn).NetConn() // closing it waits for no farewell
	f.open = append(f.open, raw, server)
	done := f.done
	f.mu.Unlock()
	if done || client.(*tls.Conn).Handshake() != nil {
		_, _ = raw.Close(), server.Close()
		return
	}
	f.accepted.Add(1)
	f.wg.Go(func() {
		_, _ = io.Copy(server, client)
		_, _ = raw.Close(), server.Close()
	})
	_, _ = io.Copy(client, server)
	_, _ = raw.Close(), server.Close()
}

// tlsSentinel is a server, a sentinel that watches it, two ways to that over TLS, and proxies before and behind the first one.
type tlsSentinel struct {
	*faultRig

	server        *redistest.Server
	first, second *tlsFront
	outer, inner  *redistest.Proxy
}

func newTLSSentinel(t *testing.T) *tlsSentinel {
	t.Helper()
	r := &tlsSentinel{server: redistest.Start(t, redistest.Options{})}
	host, port := serverAddr(t, r.server)
	dir := t.TempDir()
	file := filepath.Join(dir, "sentinel.conf")
	lines := fmt.Sprintf("sentinel monitor %[1]s %[2]s %[3]s 1\nsentinel down-after-milliseconds %[1]s %[4]s\n", sentinelSet, host, port, sentinelCalm)
	if err := os.WriteFile(file, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	sentinel := redistest.Start(t, redistest.Options{Dir: dir, File: file, Args: []string{"--sentinel"}})
	r.faultRig = newFaultRig(t, r.server)
	r.inner = redistest.NewProxy(t, sentinel.URL())
	r.first = newTLSFront(t, r.inner.Addr())
	r.outer = redistest.NewProxy(t, r.first.Addr().String())
	r.second = newTLSFront(t, sentinel.Addr())
	r.opts = &rueidis.ClientOption{
		InitAddress: []string{r.outer.Addr(), r.second.Addr().String()},
		Sentinel:    rueidis.SentinelOption{MasterSet: sentinelSet, TLSConfig: &tls.Config{InsecureSkipVerify: true}},
	}
	return r
}

// P9: a sentinel takes connections and says nothing, before the handshake of TLS or after it: the dial is cut, and the next one asked.
func TestSilentTLSSentinelIsPassedOver(t *testing.T) {
	t.Parallel()
	for name, silence := range map[string]func(*tlsSentinel){
		"before the handshake": func(r *tlsSentinel) { r.outer.BlackHole() },
		"after the handshake":  func(r *tlsSentinel) { r.inner.BlackHole() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newTLSSentinel(t)
			silence(r)
			began := time.Now()
			opened := make(chan error, 1)
			go func() {
				c, err := xstreamq.OpenWith(*r.opts, r.clientConfig())
				if err == nil {
					err = errors.Join(c.Healthy(context.Background()), c.Close())
				}
				opened <- err
			}()
			select {
			case err := <-opened:
				t.Logf("it took %v", time.Since(began).Round(time.Millisecond))
				if err != nil {
					t.Error(err)
				}
			case <-time.After(askedWithin):
				t.Error("OpenWith still waits for the silent sentinel")
			}
		})
	}
}

// P9: the sentinel that a client listens to says nothing any more, and the master has become a replica: the client leaves that sentinel
// without waiting for its farewell, and asks the next one.
func TestSilentTLSSentinelIsLeft(t *testing.T) {
	t.Parallel()
	for name, silence := range map[string]func(*tlsSentinel){
		"before the handshake": func(r *tlsSentinel) { r.outer.BlackHole() },
		"after the handshake":  func(r *tlsSentinel) { r.inner.BlackHole() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newTLSSentinel(t)
			_, q := r.client()
			r.publish(q, "before")
			if r.first.accepted.Load() == 0 || r.second.accepted.Load() > 0 {
				t.Fatal("the client does not listen to the first sentinel")
			}
			silence(r)
			r.do("REPLICAOF", "127.0.0.1", "1")
			began := time.Now()
			redistest.WaitFor(t, faultPatience, "the next sentinel to be asked", func() bool {
				_, err := q.Publish(t.Context(), "to a replica")
				return err != nil && r.second.accepted.Load() > 0
			})
			took := time.Since(began)
			t.Logf("asked after %v", took.Round(time.Millisecond))
			if took > askedWithin {
				t.Errorf("it took %v until the next sentinel was asked", took)
			}
			r.do("REPLICAOF", "NO", "ONE")
			redistest.WaitFor(t, faultPatience, "a publish to the master", func() bool {
				_, err := q.Publish(t.Context(), "after")
				return err == nil
			})
		})
	}
}
