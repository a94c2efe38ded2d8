package xstreamq_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// openAuthority issues certificates.
type openAuthority struct {
	t    *testing.T
	dir  string
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

// newOpenAuthority makes one, with its own certificate in ca.pem of dir.
func newOpenAuthority(t *testing.T, dir string) *openAuthority {
	t.Helper()
	a := &openAuthority{t: t, dir: dir}
	var der []byte
	a.key, der = a.issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	var err error
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.write("ca.pem", "CERTIFICATE", der)
	return a
}

func (a *openAuthority) issue(c *x509.Certificate) (*ecdsa.PrivateKey, []byte) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c.SerialNumber = big.NewInt(time.Now().UnixNano())
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil { // its own
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	return key, der
}

func (a *openAuthority) write(name, kind string, der []byte) string {
	a.t.Helper()
	path := filepath.Join(a.dir, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}

// pair issues a certificate for 127.0.0.1, in NAME.pem and NAME.key, to be shown by servers and clients alike.
func (a *openAuthority) pair(name string) tls.Certificate {
	a.t.Helper()
	key, der := a.issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(a.write(name+".pem", "CERTIFICATE", der), a.write(name+".key", "PRIVATE KEY", secret))
	if err != nil {
		a.t.Fatal(err)
	}
	return pair
}

func (a *openAuthority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// startTLS starts a server that takes TLS, from clients with a certificate only, and returns its address. It skips the test on
// a redis-server that was built without TLS; those of all distributions have it.
func startTLS(t *testing.T, dir string) string {
	t.Helper()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := taken.Addr().(*net.TCPAddr).Port
	_ = taken.Close()
	in := func(name string) string { return filepath.Join(dir, name) }
	server, err := redistest.NewServer(redistest.Options{Dir: dir, Args: []string{
		"--tls-port", strconv.Itoa(port), "--tls-cert-file", in("server.pem"), "--tls-key-file", in("server.key"),
		"--tls-ca-cert-file", in("ca.pem"), "--tls-auth-clients", "yes", "--unixsocket", in("redis.sock"),
	}})
	if err != nil && (strings.Contains(err.Error(), "Failed finding TLS support") || strings.Contains(err.Error(), "Bad directive")) {
		t.Skip("SKIPPED: this server was built without TLS")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

// openWorks lets a client publish to itself and stop.
func openWorks(t *testing.T, c *xstreamq.Client, err error) {
	t.Helper()
	openDials(t, c, err, func() int32 { return 3 })
}

// openDials is openWorks with a dial that counts: a connection for all, and two for blocked reads.
func openDials(t *testing.T, c *xstreamq.Client, err error, dials func() int32) {
	t.Helper()
	if err != nil {
		t.Error(err)
		return
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	q := stopQueue(t, c, "q")
	got := make(chan string, 1)
	stopSubscribe(t, q, func(_ context.Context, m *xstreamq.Message[string]) error {
		got <- m.Body
		return nil
	}, xstreamq.SubscribeOptions{})
	stopStart(t, c)
	stopPublish(t, q, t.Name())
	if body := stopTake(t, "the message", got); body != t.Name() {
		t.Errorf("got %q", body)
	}
	redistest.WaitFor(t, stopWait, "three connections", func() bool { return dials() >= 3 })
}

// OpenWith works over TLS with client certificates, and says what is wrong with others; Open and OpenWith work over a Unix socket, and
// with a dial of the caller's own.
func TestOpenWithConnections(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "tls") //nolint:usetesting // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	authority := newOpenAuthority(t, dir)
	authority.pair("server")
	client := authority.pair("client")
	addr := startTLS(t, dir)
	secure := func(config *tls.Config) rueidis.ClientOption {
		return rueidis.ClientOption{InitAddress: []string{addr}, TLSConfig: config}
	}
	prefix := func(s string) xstreamq.Config { return xstreamq.Config{KeyPrefix: s + ":"} }

	t.Run("with a certificate", func(t *testing.T) {
		opts := secure(&tls.Config{RootCAs: authority.pool(), Certificates: []tls.Certificate{client}})
		c, err := xstreamq.OpenWith(opts, prefix("tls"))
		openWorks(t, c, err)
	})
	t.Run("without one", func(t *testing.T) {
		if c, err := xstreamq.OpenWith(secure(&tls.Config{RootCAs: authority.pool()}), prefix("none")); err == nil {
			_ = c.Close()
			t.Error("it was opened")
		}
	})
	t.Run("an authority that is not known", func(t *testing.T) {
		_, err := xstreamq.OpenWith(secure(&tls.Config{Certificates: []tls.Certificate{client}}), prefix("unknown"))
		var unknown x509.UnknownAuthorityError
		if !errors.As(err, &unknown) {
			t.Errorf("%v, want an unknown authority", err)
		}
	})
	t.Run("a dial of the caller's, with TLS", func(t *testing.T) {
		var dials atomic.Int32
		opts := secure(&tls.Config{RootCAs: authority.pool(), Certificates: []tls.Certificate{client}})
		opts.DialCtxFn = func(ctx context.Context, to string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
			dials.Add(1)
			return (&tls.Dialer{NetDialer: dialer, Config: config}).DialContext(ctx, "tcp", to)
		}
		c, err := xstreamq.OpenWith(opts, prefix("dial"))
		openDials(t, c, err, dials.Load)
	})
	t.Run("a dial of the old kind", func(t *testing.T) {
		var dials atomic.Int32
		opts := secure(&tls.Config{RootCAs: authority.pool(), Certificates: []tls.Certificate{client}})
		opts.DialFn = func(to string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
			dials.Add(1)
			return tls.DialWithDialer(dialer, "tcp", to, config)
		}
		c, err := xstreamq.OpenWith(opts, prefix("old"))
		openDials(t, c, err, dials.Load)
	})
	t.Run("sentinels with TLS of their own", func(t *testing.T) {
		pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "server.pem"), filepath.Join(dir, "server.key"))
		if err != nil {
			t.Fatal(err)
		}
		sentinel, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = sentinel.Close() }()
		greeted := make(chan error, 100)
		go func() { // it knows TLS, and nothing else
			for conn, err := sentinel.Accept(); err == nil; conn, err = sentinel.Accept() {
				greeted <- conn.(*tls.Conn).HandshakeContext(t.Context())
				_ = conn.Close()
			}
		}()
		opts := rueidis.ClientOption{InitAddress: []string{sentinel.Addr().String()}}
		opts.Sentinel.MasterSet, opts.Sentinel.TLSConfig = "main", &tls.Config{RootCAs: authority.pool()}
		if _, err := xstreamq.OpenWith(opts, prefix("sentinel")); err == nil {
			t.Error("it was opened")
		}
		if err := stopTake(t, "a connection", greeted); err != nil {
			t.Error(err)
		}
	})
	t.Run("a Unix socket", func(t *testing.T) {
		c, err := xstreamq.Open("unix://"+filepath.Join(dir, "redis.sock")+"?db=1", prefix("unix"))
		openWorks(t, c, err)
	})
}

// OpenWith refuses what no queue can work with before it dials, and leaves the caller's options as they are.
func TestOpenWithOptions(t *testing.T) {
	t.Parallel()
	nowhere := rueidis.ClientOption{InitAddress: []string{"127.0.0.1:1"}}
	for name, set := range map[string]func(*rueidis.ClientOption, *xstreamq.Config){
		"ReplicaOnly": func(o *rueidis.ClientOption, _ *xstreamq.Config) { o.ReplicaOnly = true },
		"SendToReplicas": func(o *rueidis.ClientOption, _ *xstreamq.Config) {
			o.SendToReplicas = func(rueidis.Completed) bool { return true }
		},
		"a Config": func(_ *rueidis.ClientOption, c *xstreamq.Config) { c.MaxBodySize = -1 },
	} {
		opts, cfg := nowhere, xstreamq.Config{}
		set(&opts, &cfg)
		if _, err := xstreamq.OpenWith(opts, cfg); !errors.Is(err, xstreamq.ErrInvalidConfig) {
			t.Errorf("%s: %v, want ErrInvalidConfig", name, err)
		}
	}
	if _, err := xstreamq.OpenWith(nowhere, xstreamq.Config{}); err == nil || errors.Is(err, xstreamq.ErrInvalidConfig) {
		t.Errorf("nobody listens there: %v", err)
	}

	addresses := []string{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3", "127.0.0.1:4", "127.0.0.1:5", "127.0.0.1:6"}
	for range 5 {
		opts := rueidis.ClientOption{InitAddress: addresses, ShuffleInit: true}
		if _, err := xstreamq.OpenWith(opts, xstreamq.Config{}); err == nil {
			t.Fatal("nobody listens there")
		}
	}
	if diff := cmp.Diff([]string{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3", "127.0.0.1:4", "127.0.0.1:5", "127.0.0.1:6"}, addresses); diff != "" {
		t.Errorf("the caller's addresses were moved:\n%s", diff)
	}

	// As rueidis would do it by itself, these would let a deadline end the connection that others wait on.
	opts := rueidis.ClientOption{DisableAutoPipelining: true, PipelineMultiplex: 3, BlockingPoolSize: 1}
	own, err := rueidis.ParseURL(redistest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	opts.InitAddress, opts.Username, opts.Password, opts.SelectDB = own.InitAddress, own.Username, own.Password, own.SelectDB
	c, err := xstreamq.OpenWith(opts, xstreamq.Config{KeyPrefix: redistest.Prefix(t)})
	openWorks(t, c, err)
}
