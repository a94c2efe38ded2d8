package cli

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq/internal/redistest"
	"github.com/xstreamq/xstreamq/rsmq"
)

// RSMQ_URL comes after the flags and before XSTREAMQ_URL, and is for the commands of RSMQ alone.
func TestRSMQURL(t *testing.T) {
	urlFile := file(t, "redis://of-file:1")
	for _, c := range []struct {
		name, rsmq, xstreamq, before string
		args                         []string
		want                         string
	}{
		{"before the other one", "redis://of-rsmq:1", "redis://of-env:1", rsmqURLVariable, nil, "of-rsmq:1"},
		{"not set", "", "redis://of-env:1", rsmqURLVariable, nil, "of-env:1"},
		{"neither", "", "", rsmqURLVariable, nil, "localhost:6379"},
		{"of another command", "redis://of-rsmq:1", "redis://of-env:1", "", nil, "of-env:1"},
		{"after --url", "redis://of-rsmq:1", "", rsmqURLVariable, []string{"--url", "redis://of-flag:1"}, "of-flag:1"},
		{"after --url-file", "redis://of-rsmq:1", "", rsmqURLVariable, []string{"--url-file", urlFile}, "of-file:1"},
	} {
		t.Setenv(rsmqURLVariable, c.rsmq)
		t.Setenv(urlVariable, c.xstreamq)
		conn := flagged(t, c.args...)
		conn.before = c.before
		opts, err := conn.options(t.Context())
		if got := strings.Join(opts.InitAddress, " "); err != nil || got != c.want {
			t.Errorf("%s: %s, %v; want %s", c.name, got, err, c.want)
		}
	}
}

// Lines are sent as they come; an interrupt ends it, and says how many were stored.
func TestRSMQSendLinesAsTheyCome(t *testing.T) {
	t.Parallel()
	m := newMigration(t, rsmq.QueueOptions{})
	cmd := command(t, "rsmq", "send", "-q", "q", "--ns", m.ns, "--url", redistest.URL(t))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ids := bufio.NewReader(out)
	for i := range 2 {
		if _, err := fmt.Fprintf(in, "message %d\n", i); err != nil {
			t.Fatal(err)
		}
		if id, err := ids.ReadString('\n'); err != nil || !rsmqIDPattern.MatchString(id) {
			t.Fatalf("%q, %v", id, err)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(ids); err != nil || len(rest) > 0 {
		t.Errorf("%q, %v", rest, err)
	}
	code := exitCode(t, cmd.Wait())
	if want := "stopped: 2 messages stored so far\nerror: interrupted\n"; code != 1 || stderr.String() != want {
		t.Errorf("exit code %d, stderr %q; want 1 and %q", code, stderr.String(), want)
	}
}

// A purge also deletes what no other command can: a message with a stranger's id, and one without a body.
func TestRSMQPurgeOfStrangers(t *testing.T) {
	t.Parallel()
	m := newMigration(t, rsmq.QueueOptions{})
	m.fill(t, 1, 3, rsmq.SendOptions{})
	key := m.ns + ":q"
	add := m.redis.B().Zadd().Key(key).ScoreMember().ScoreMember(1, "a stranger's").ScoreMember(2, "no body").Build()
	if err := m.redis.Do(t.Context(), add).Error(); err != nil {
		t.Fatal(err)
	}
	said := output(t, command(t, "rsmq", "purge", "-q", "q", "--yes", "--json", "--ns", m.ns, "--url", redistest.URL(t)))
	if want := `{"queue":"q","purged":5}`; said != want+"\n" || m.count(t, "ZCARD", key) != 0 {
		t.Errorf("it says %q, want %q", said, want)
	}
}

// Many messages are sent in pages, and purged in pages; a purge that was killed can be run again.
func TestRSMQPurgeKilled(t *testing.T) {
	t.Parallel()
	const sent = 5000
	m := newMigration(t, rsmq.QueueOptions{})
	m.fill(t, 1, sent, rsmq.SendOptions{})
	proxy := redistest.NewProxy(t, redistest.URL(t))
	proxy.Delay(10 * time.Millisecond)
	line := []string{"rsmq", "purge", "-q", "q", "--yes", "--ns", m.ns, "--url"}
	killed := command(t, append(line, proxy.URL())...)
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	redistest.WaitFor(t, 20*time.Second, "a part of the messages to be deleted", func() bool { return m.count(t, "ZCARD", m.ns+":q") < sent*4/5 })
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait()
	if m.count(t, "ZCARD", m.ns+":q") == 0 {
		t.Fatal("nothing was left when it was killed: too late")
	}
	said := output(t, command(t, append(line, redistest.URL(t))...))
	found, err := m.client.GetQueueAttributes(t.Context(), "q")
	if err != nil || found.Messages != 0 || found.Received != 0 || found.Sent != sent || !strings.HasPrefix(said, "purged ") {
		t.Errorf("it says %q, and the queue is %+v, %v", said, found, err)
	}
	const attributes = 6 // the counter of what was received is not there yet
	if n := m.count(t, "HLEN", m.ns+":q:Q"); n > attributes+1 {
		t.Errorf("%d fields are left of the queue", n)
	}
}
