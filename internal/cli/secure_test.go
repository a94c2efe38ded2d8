package cli

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
	"io"
	"math/big"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	a.key = newKey(t)
	der := a.sign(t, &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, a.key)
	var err error
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (a *authority) sign(t *testing.T, cert *x509.Certificate, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	cert.SerialNumber = big.NewInt(1)
	cert.Subject = pkix.Name{CommonName: "xstreamq test"}
	cert.NotBefore, cert.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	by := a.cert
	if by == nil {
		by = cert
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, by, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// issue returns a certificate for a host, and its files.
func (a *authority) issue(t *testing.T, host string) (pair tls.Certificate, certFile, keyFile string) {
	t.Helper()
	cert := &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	if ip := net.ParseIP(host); ip != nil {
		cert.IPAddresses = []net.IP{ip}
	} else {
		cert.DNSNames = []string{host}
	}
	key := newKey(t)
	der := a.sign(t, cert, key)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
	if pair, err = tls.X509KeyPair(certPEM, keyPEM); err != nil {
		t.Fatal(err)
	}
	return pair, file(t, string(certPEM)), file(t, string(keyPEM))
}

func (a *authority) file(t *testing.T) string {
	t.Helper()
	return file(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})))
}

// tlsServer speaks TLS in front of the shared Redis, and returns its host:port.
func tlsServer(t *testing.T, config *tls.Config) string {
	t.Helper()
	target := strings.TrimPrefix(redistest.URL(t), "redis://")
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	t.Cleanup(func() {
		listener.Close()
		serving.Wait()
	})
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { forward(conn, target) })
		}
	})
	return listener.Addr().String()
}

func forward(from net.Conn, target string) {
	defer from.Close()
	to, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer to.Close()
	go func() {
		_, _ = io.Copy(to, from)
		to.Close()
	}()
	_, _ = io.Copy(from, to)
}

func TestTLS(t *testing.T) {
	t.Parallel()
	ca, stranger := newAuthority(t), newAuthority(t)
	pair, cert, key := ca.issue(t, "127.0.0.1")
	elsewhere, _, _ := ca.issue(t, "redis.example.com")
	_, strangeCert, strangeKey := stranger.issue(t, "127.0.0.1")
	trusted := x509.NewCertPool()
	trusted.AddCert(ca.cert)

	plain := strings.TrimPrefix(redistest.URL(t), "redis://")
	secure := tlsServer(t, &tls.Config{Certificates: []tls.Certificate{pair}})
	misplaced := tlsServer(t, &tls.Config{Certificates: []tls.Certificate{elsewhere}})
	mutual := tlsServer(t, &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: trusted,
	})
	for name, c := range map[string]struct {
		args []string
		want string // in the error; empty = it works
	}{
		"trusted":                 {[]string{"--url", "rediss://" + secure, "--cacert", ca.file(t)}, ""},
		"cacert turns it on":      {[]string{"--url", "redis://" + secure, "--cacert", ca.file(t)}, ""},
		"skip_verify":             {[]string{"--url", "rediss://" + secure + "?skip_verify"}, ""},
		"mutual":                  {[]string{"--url", "rediss://" + mutual, "--cacert", ca.file(t), "--cert", cert, "--key", key}, ""},
		"unknown authority":       {[]string{"--url", "rediss://" + secure}, "--cacert"},
		"another authority":       {[]string{"--url", "rediss://" + secure, "--cacert", stranger.file(t)}, "--cacert"},
		"another host":            {[]string{"--url", "rediss://" + misplaced, "--cacert", ca.file(t)}, "host name"},
		"no client certificate":   {[]string{"--url", "rediss://" + mutual, "--cacert", ca.file(t)}, "--cert"},
		"its authority not known": {[]string{"--url", "rediss://" + mutual, "--cacert", ca.file(t), "--cert", strangeCert, "--key", strangeKey}, "--cert"},
		"no TLS there":            {[]string{"--url", "rediss://" + plain, "--timeout", "500ms"}, "speak TLS"},
		"TLS there":               {[]string{"--url", "redis://" + secure}, "rediss://"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := run(t, append([]string{"ls", "--prefix", redistest.Prefix(t)}, c.args...)...)
			if c.want == "" {
				if got.code != 0 || got.stderr != "" {
					t.Errorf("%+v, want nothing", got)
				}
				return
			}
			if got.code != 1 || got.stdout != "" || notOneLine(got.stderr) != "" || !strings.Contains(got.stderr, c.want) {
				t.Errorf("%+v, want one line that says %q", got, c.want)
			}
			_, address, _ := strings.Cut(c.args[1], "://")
			address, _, _ = strings.Cut(address, "?")
			if !strings.Contains(got.stderr, address) {
				t.Errorf("%q does not name the address", got.stderr)
			}
		})
	}
}

// A second connection that fails says nothing of TLS: the first one has shown that both sides agree.
func TestTLSIsJudgedByTheFirstConnection(t *testing.T) {
	t.Parallel()
	secure, plain := rueidis.ClientOption{TLSConfig: &tls.Config{}}, rueidis.ClientOption{}
	socket := rueidis.ClientOption{DialCtxFn: func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) { return nil, io.EOF }}
	for name, c := range map[string]struct {
		opts    rueidis.ClientOption
		reached bool
		err     error
		want    error
	}{
		"closed":                {plain, false, io.EOF, errWantsTLS},
		"reset":                 {plain, false, syscall.ECONNRESET, errWantsTLS},
		"closed later":          {plain, true, io.EOF, nil},
		"closed in TLS":         {secure, false, io.EOF, nil},
		"closed on a socket":    {socket, false, io.EOF, nil},
		"silent in TLS":         {secure, false, context.DeadlineExceeded, errSilentInTLS},
		"silent in TLS, later":  {secure, true, context.DeadlineExceeded, nil},
		"silent without TLS":    {plain, false, context.DeadlineExceeded, nil},
		"refused, as all ports": {plain, false, syscall.ECONNREFUSED, nil},
	} {
		a := &app{}
		if c.reached {
			_ = a.contact(c.opts, nil)
		}
		got := a.contact(c.opts, c.err)
		for _, mark := range []error{errWantsTLS, errSilentInTLS} {
			if errors.Is(got, mark) != (mark == c.want) || !errors.Is(got, c.err) { //nolint:errorlint // the mark itself
				t.Errorf("%s: %v, want %v", name, got, c.want)
			}
		}
	}
}
