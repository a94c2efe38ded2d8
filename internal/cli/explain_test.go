package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// refused is how Redis answers with an error of that text.
func refused(t *testing.T, text string) error {
	t.Helper()
	client := redistest.Client(t)
	script := "return redis.error_reply(ARGV[1])"
	err := client.Do(t.Context(), client.B().Eval().Script(script).Numkeys(0).Arg(text).Build()).Error()
	if err == nil {
		t.Fatal("no error")
	}
	return fmt.Errorf("xstreamq: depth of queue %q: key {q}: %w", "q", err)
}

func TestExplain(t *testing.T) {
	t.Parallel()
	const similar = "unknown command \"lss\"\n\nDid you mean this?\n\tls\n\tlag\n\n" // as cobra says it
	dial := &net.OpError{Op: "dial", Net: "unix", Err: os.NewSyscallError("connect", syscall.ENOENT)}
	for name, c := range map[string]struct {
		err  error
		want []string
		not  string
	}{
		"joined":      {errors.Join(errors.New("a"), errors.New("b")), []string{"a; b"}, "\n"},
		"similar":     {errors.New(similar), []string{`unknown command "lss"; maybe ls or lag was meant`}, "?"},
		"escaped":     {errors.New("a\x1b[2J\tb"), []string{`a\x1b[2J\tb`}, "\x1b"},
		"our name":    {fmt.Errorf("%w: %q", xstreamq.ErrNoMessage, "1-0"), []string{`no such message: "1-0"`}, "xstreamq:"},
		"no queue":    {fmt.Errorf("depth: %w", xstreamq.ErrNoQueue), []string{"no such queue", "xstreamq ls", "--prefix"}, ""},
		"no group":    {fmt.Errorf("depth: %w", xstreamq.ErrNoGroup), []string{"no such group", "xstreamq ls"}, ""},
		"NOPERM":      {refused(t, "NOPERM no"), []string{"key {q}: NOPERM no", "ACL SETUSER"}, ""},
		"WRONGTYPE":   {refused(t, "WRONGTYPE no"), []string{"key {q}: WRONGTYPE no", "--prefix"}, ""},
		"XQTYPE":      {refused(t, "XQTYPE k is a list"), []string{"XQTYPE k is a list", "--prefix"}, ""},
		"READONLY":    {refused(t, "READONLY no"), []string{"READONLY no", "primary"}, ""},
		"MISCONF":     {refused(t, "MISCONF no"), []string{"MISCONF no", "disk"}, ""},
		"OOM":         {refused(t, "OOM no"), []string{"OOM no", "maxmemory"}, ""},
		"OOM on 6.2":  {refused(t, "Error running script (call to f_1): @user_script:1: OOM no"), []string{"maxmemory"}, ""},
		"CLUSTERDOWN": {refused(t, "CLUSTERDOWN no"), []string{"CLUSTERDOWN no", "CLUSTER INFO"}, ""},
		"no remedy":   {refused(t, "ERR no"), []string{"no"}, "("},
		"socket":      {dial, []string{"no such file", "--url"}, ""},
		"host":        {&net.DNSError{Err: "no such host", Name: "h"}, []string{"no such host", "host name"}, ""},
		"denied": {
			refused(t, "ERR The user executing the script can't run this command or subcommand"),
			[]string{"lacks a permission", "docs/operations.md", "ACL LOG", "ACL SETUSER"}, "",
		},
		"denied in 6.2": {
			refused(t, "ERR Error running script (call to f_1d90): @user_script:1: @user_script: 1: The user executing the script can't run this command"),
			[]string{"key {q}: The user executing the script can't run this command (", "lacks a permission"}, "script:",
		},
		"place in script": {refused(t, "OOM no script: 1d90, on @user_script:86."), []string{"key {q}: OOM no (", "maxmemory"}, "1d90"},
		"closed":          {fmt.Errorf("ls: %w", io.EOF), []string{"EOF", "stopped"}, "TLS"},
		"reset":           {fmt.Errorf("ls: %w", syscall.ECONNRESET), []string{"reset", "stopped"}, "TLS"},
		"closed at once":  {tlsMismatch(rueidis.ClientOption{}, io.EOF), []string{"EOF", "rediss://"}, ""},
		"unread file":     {fmt.Errorf("f: %w: %w", errFileUnread, context.DeadlineExceeded), []string{"pipe"}, "Redis"},
		"in use": {
			fmt.Errorf("%w: stop them first, or use Force", xstreamq.ErrGroupInUse), []string{"or use --force"}, "Force",
		},
		"slow":        {fmt.Errorf("ls: %w", context.DeadlineExceeded), []string{"does not answer in time"}, ""},
		"our timeout": {&timeoutError{2 * time.Second, fmt.Errorf("ls: %w", context.DeadlineExceeded)}, []string{"not done within 2s (--timeout): ls ("}, "exceeded"},
	} {
		got := explain(c.err)
		for _, part := range c.want {
			if !strings.Contains(got, part) {
				t.Errorf("%s: no %q in %q", name, part, got)
			}
		}
		if c.not != "" && strings.Contains(got, c.not) {
			t.Errorf("%s: %q in %q", name, c.not, got)
		}
	}
}
