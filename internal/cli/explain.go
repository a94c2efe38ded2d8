package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/rediserr"
)

// usageError is a mistake in the command line that cobra does not see.
type usageError struct{ error }

// Unwrap keeps the cause.
func (e usageError) Unwrap() error { return e.error }

// timeoutError says that the command's own time was up.
type timeoutError struct {
	limit time.Duration
	err   error
}

func (e *timeoutError) Error() string {
	return fmt.Sprintf("not done within %s (--timeout): %s", e.limit, strings.TrimSuffix(e.err.Error(), ": "+context.DeadlineExceeded.Error()))
}
func (e *timeoutError) Unwrap() error { return e.err }

// explain makes one line of an error: what failed, on what, why, and where it is known, what to do about it. It is safe on a terminal.
func explain(err error) string {
	text := strings.ReplaceAll(suggested(err.Error()), "\n", "; ")
	text = rediserr.Readable(strings.ReplaceAll(text, "xstreamq: ", ""))
	if errors.Is(err, xstreamq.ErrGroupInUse) {
		text = goForce.Replace(text)
	}
	if remedy := remedy(err); remedy != "" {
		text += " (" + remedy + ")"
	}
	return printable(text)
}

// suggested puts cobra's list of similar commands into its sentence.
func suggested(text string) string {
	said, list, found := strings.Cut(text, "\n\nDid you mean this?\n")
	if !found {
		return text
	}
	return said + "; maybe " + strings.Join(strings.Fields(list), " or ") + " was meant"
}

// goForce puts the flag in the place of the option that the library's text names.
var goForce = strings.NewReplacer(" with Force", " with --force", " use Force", " use --force")

// remedy is what to do about an error, or "".
func remedy(err error) string {
	var own interface{ remedy() string }
	if errors.As(err, &own) {
		if remedy := own.remedy(); remedy != "" {
			return remedy
		}
	}
	switch {
	case errors.Is(err, xstreamq.ErrNoQueue):
		return "xstreamq ls lists the queues; mind --url and --prefix"
	case errors.Is(err, xstreamq.ErrNoGroup):
		return "xstreamq ls lists the groups"
	case errors.Is(err, xstreamq.ErrGroupInUse), errors.Is(err, xstreamq.ErrNoMessage), errors.Is(err, xstreamq.ErrInvalidName):
		return ""
	}
	if code := rediserr.Code(err); code != "" {
		return redisRemedies[code]
	}
	return networkRemedy(err)
}

// redisRemedies are those for what Redis itself says, by the first word of it.
var redisRemedies = map[string]string{
	"NOPERM":      "the Redis user lacks a permission that this needs: see Permissions in docs/operations.md, and ACL LOG; grant it with ACL SETUSER",
	"NOAUTH":      "Redis wants a password: put it into the URL as redis://user:password@host:port, best in a file for --url-file",
	"WRONGPASS":   "the user name or password in the URL is wrong",
	"WRONGTYPE":   "another program uses this key; a --prefix keeps apart",
	"XQTYPE":      "another program uses this key; a --prefix keeps apart",
	"LOADING":     "Redis has just started and reads its data: try again in a while",
	"READONLY":    "this is a replica: name its primary in the URL",
	"MISCONF":     "Redis cannot save to its disk and so takes no writes: see its log",
	"OOM":         "Redis is at maxmemory: raise it, or make room",
	"CLUSTERDOWN": "the Redis cluster is not complete: see CLUSTER INFO",
	"MASTERDOWN":  "this replica has lost its primary",
	"NOREPLICAS":  "Redis has fewer replicas than its min-replicas-to-write",
	"BUSY":        "a script of somebody blocks Redis: SCRIPT KILL ends it",
}

func networkRemedy(err error) string {
	var (
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		expired   x509.CertificateInvalidError
		notTLS    tls.RecordHeaderError
		name      *net.DNSError
	)
	switch {
	case errors.Is(err, errFileUnread):
		return "is it a pipe that nobody writes to?"
	case errors.Is(err, errWantsTLS):
		return "does the server want TLS, as rediss:// or with --cacert?"
	case errors.Is(err, errSilentInTLS):
		return "does the server speak TLS on this port? If not: redis:// without --cacert and --cert"
	case errors.As(err, &authority):
		return "the server's certificate is of an authority that is not trusted here: name that in --cacert"
	case errors.As(err, &host):
		return "use a host name in the URL that the certificate holds"
	case errors.As(err, &expired):
		return "the server's certificate cannot be used"
	case errors.As(err, &notTLS):
		return "the server does not speak TLS on this port: use redis:// without --cacert and --cert, or its TLS port"
	case isOp(err, "remote error"):
		return "the server wants another certificate: see --cert and --key"
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOENT) && isOp(err, "dial"):
		return "is Redis running there? --url, --url-file or XSTREAMQ_URL say where it is"
	case errors.As(err, &name):
		return "the host name in the URL is not known here"
	case isClosed(err):
		return "the connection was closed: was Redis stopped, or this client cut off? See its log"
	case isTimeout(err):
		return "Redis does not answer in time: is it busy, stopped, or behind a firewall?"
	}
	return ""
}

// isOp reports an error of the network in an operation; "remote error" is that of a TLS peer that refuses us.
func isOp(err error, name string) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == name
}

// isClosed reports that the other side has ended the connection.
func isClosed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}
