package cli

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/redis/rueidis"
)

// secure sets TLS up as --cacert, --cert and --key ask for it, on top of what the URL says.
func (c *connection) secure(opts *rueidis.ClientOption) error {
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
		if err := c.certificates(opts.TLSConfig); err != nil {
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

func (c *connection) certificates(config *tls.Config) error {
	if c.caCert != "" {
		pem, err := os.ReadFile(c.caCert)
		if err != nil {
			return fmt.Errorf("--cacert: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("--cacert: %s holds no certificate in PEM form", c.caCert)
		}
	}
	if c.cert != "" {
		pair, err := tls.LoadX509KeyPair(c.cert, c.key)
		if err != nil {
			return fmt.Errorf("--cert %s with --key %s: %w", c.cert, c.key, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return nil
}

// errSilentInTLS: a Redis that expects no TLS waits for more of what it takes for a command.
var errSilentInTLS = errors.New("no answer in TLS")

func silentInTLS(opts rueidis.ClientOption, err error) error {
	if opts.TLSConfig == nil || !isTimeout(err) {
		return err
	}
	return fmt.Errorf("%w: %w", errSilentInTLS, err)
}
