//go:build unix

package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

// TestWorkUnwritten takes from a worker the right to write what became of a message, while its command runs. Nothing it says may
// be read as if the message were done: it comes again.
func TestWorkUnwritten(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ script, denied, verdict, summary string }{
		"ack":     {`exit 0`, "-xack", `"verdict":"ack"`, `"acked":0,"retried":0,"dead":0,"released":0,"unwritten":1`},
		"retry":   {`exit 1`, "-zadd", `"verdict":"retry"`, `"acked":0,"retried":0,"dead":0,"released":0,"unwritten":1`},
		"dead":    {`exit 65`, "-xack", `"verdict":"dead"`, `"acked":0,"retried":0,"dead":0,"released":0,"unwritten":1`},
		"release": {`exit 75`, "-zadd", `"verdict":"release"`, `"acked":0,"retried":0,"dead":0,"released":0,"unwritten":1`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, server := ownPlace(t, redistest.Options{})
			do(t, p.redis, "ACL", "SETUSER", "worker", "on", ">secret", "~*", "&*", "+@all")
			id := p.send(t, "")
			far := place{strings.Replace(server.URL(), "redis://", "redis://worker:secret@", 1), "", p.redis}
			cmd := far.work(t, `echo $$ >"$DIR/pid"; until [ -e "$DIR/go" ]; do sleep 0.01; done; `+c.script, "--json", "--max", "1")
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			begin(t, cmd)
			awaitFile(t, cmd.Dir, "pid")
			do(t, p.redis, "ACL", "SETUSER", "worker", c.denied)
			write(t, cmd.Dir, "go")
			code := ended(t, cmd)
			if n := p.counters(t); code != 1 || n.pending+n.backoff+n.dead != 1 {
				t.Errorf("exit code %d, messages %+v; want 1, and one that comes again", code, n)
			}
			row := stdout.String()
			if strings.Count(row, "\n") != 1 || !strings.Contains(row, c.verdict) || !strings.Contains(row, id) ||
				strings.Contains(row, "acked") || strings.Contains(row, "outcome") {
				t.Errorf("stdout %q", row)
			}
			if log := stderr.String(); !strings.Contains(log, c.summary) || !strings.Contains(log, "could not be written") {
				t.Errorf("stderr %s; want %s", log, c.summary)
			}
		})
	}
}
