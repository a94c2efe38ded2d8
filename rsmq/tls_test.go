package rsmq

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

// startTLS starts a server that takes TLS, and returns its address. redis-server must have been built with TLS, as those of all distributions
// are.
func startTLS(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	own := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	cert, err := x509.CreateCertificate(rand.Reader, own, own, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := taken.Addr().(*net.TCPAddr).Port
	_ = taken.Close()
	redistest.Start(t, redistest.Options{Args: []string{
		"--tls-port", strconv.Itoa(port), "--tls-auth-clients", "no",
		"--tls-cert-file", write("cert.pem", "CERTIFICATE", cert), "--tls-key-file", write("key.pem", "PRIVATE KEY", secret),
	}})
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

// Over TLS everything works; a certificate that nobody knows is refused unless the URL says skip_verify.
func TestTLS(t *testing.T) {
	t.Parallel()
	addr := startTLS(t)
	_, err := Open("rediss://"+addr, Config{})
	var unknown x509.UnknownAuthorityError
	if !errors.As(err, &unknown) {
		t.Errorf("a certificate that nobody knows: %v", err)
	}
	if _, err := Open("redis://"+addr+"?dial_timeout=2s&write_timeout=2s", Config{}); err == nil {
		t.Error("it speaks to TLS in the clear")
	}
	c := opened(t, "rediss://"+addr+"?skip_verify", Config{})
	for _, name := range []string{"create", "send", "receive", "extend", "pop", "attributes", "set", "delete", "purge", "list", "drop"} {
		if err := operations(t.Context(), c, someID)[name](); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Close returns in time over TLS too, where a connection takes its leave with a message that a silent server does not take.
func TestCloseOfSilentTLS(t *testing.T) {
	t.Parallel()
	proxy := redistest.NewProxy(t, "redis://"+startTLS(t))
	c := opened(t, "rediss://"+proxy.Addr()+"?skip_verify", Config{})
	create(t, c, "q", QueueOptions{})
	proxy.BlackHole()
	sent := make(chan error)
	go func() {
		_, err := c.SendMessage(t.Context(), "q", "m", SendOptions{})
		sent <- err
	}()
	began := time.Now()
	c.Close()
	if err := <-sent; err == nil {
		t.Error("a silent server took a message")
	}
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("it took %s", took)
	}
}
