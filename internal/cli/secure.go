package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"

	"github.com/redis/rueidis"
)

// secure sets TLS up as --cacert, --cert and --key ask for it, on top of what the URL says.
func (c *connection) secure(ctx context.Context, opts *rueidis.ClientOption) error {
	if (c.cert == "") != (c.key == "") {
		return usageError{errors.New("--cert and --key go together")}
	}
	if c.caCert != "" || c.cert != "" {
		if opts.DialCtxFn != nil {
			return usageError{errors.New("--cacert and --cert are for TLS, which a unix socket does not have")}
		}
		if opts.TLSConfig == nil {
			opts.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: hostOf(opts.InitAddress)}
		}
		if err := c.certificates(ctx, opts.TLSConfig); err != nil {
			return err
		}
	}
	if opts.Sentinel.MasterSet != "" && opts.TLSConfig != nil {
		// The URL names the sentinels, and it is the URL that says TLS.
		opts.Sentinel.TLSConfig = opts.TLSConfig
	}
	return nil
}

// hostOf is the name that the server's certificate must hold.
func hostOf(addresses []string) string {
	if len(addresses) == 0 {
		return ""
	}
	host, _, err := net.SplitHostPort(addresses[0])
	if err != nil {
		return addresses[0]
	}
	return host
}

func (c *connection) certificates(ctx context.Context, config *tls.Config) error {
	if c.caCert != "" {
		pem, err := c.read(ctx, c.caCert, pemFileMost)
		if err != nil {
			return fmt.Errorf("--cacert: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("--cacert: %s holds no certificate in PEM form", c.caCert)
		}
	}
	if c.cert == "" {
		return nil
	}
	cert, err := c.read(ctx, c.cert, pemFileMost)
	if err != nil {
		return fmt.Errorf("--cert: %w", err)
	}
	key, err := c.read(ctx, c.key, pemFileMost)
	if err != nil {
		return fmt.Errorf("--key: %w", err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return fmt.Errorf("--cert %s with --key %s: %w", c.cert, c.key, err)
	}
	config.Certificates = []tls.Certificate{pair}
	return nil
}

// How it shows at the first connection that one side speaks TLS and the other does not.
var (
	// errSilentInTLS: a Redis that expects no TLS waits for more of what it takes for a command.
	errSilentInTLS = errors.New("no answer in TLS")
	// errWantsTLS: a server that expects TLS closes the connection. One that did so later has died.
	errWantsTLS = errors.New("closed at once")
)

// tlsMismatch says of an error of the first connection that it may be one of these.
func tlsMismatch(opts rueidis.ClientOption, err error) error {
	switch {
	case opts.TLSConfig != nil && isTimeout(err):
		return fmt.Errorf("%w: %w", errSilentInTLS, err)
	case opts.TLSConfig == nil && opts.DialCtxFn == nil && isClosed(err):
		return fmt.Errorf("%w: %w", errWantsTLS, err)
	}
	return err
}
