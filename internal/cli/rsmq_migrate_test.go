package cli

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/redistest"
	"github.com/xstreamq/xstreamq/rsmq"
)

// migration is an RSMQ queue q on the shared server, and the queue to that its messages are moved to.
type migration struct {
	redis      rueidis.Client
	client     *rsmq.Client
	prefix, ns string
}

func newMigration(t *testing.T, o rsmq.QueueOptions) *migration {
	t.Helper()
	prefix := redistest.Prefix(t)
	m := &migration{redis: redistest.Client(t), prefix: prefix, ns: prefix + "rsmq"}
	var err error
	if m.client, err = rsmq.Open(redistest.URL(t), rsmq.Config{Namespace: m.ns}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.client.Close)
	if err := m.client.CreateQueue(t.Context(), "q", o); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *migration) command(t *testing.T, url string, args ...string) *exec.Cmd {
	t.Helper()
	args = append([]string{"rsmq", "migrate", "q", "--to", "to", "--yes", "--url", url, "--ns", m.ns, "--prefix", m.prefix}, args...)
	cmd := command(t, args...)
	cmd.Env = append(cmd.Env, "GORACE=atexit_sleep_ms=0")
	return cmd
}

// fill sends messages whose bodies are their numbers.
func (m *migration) fill(t *testing.T, first, last int, o rsmq.SendOptions) {
	t.Helper()
	var bodies []string
	for i := first; i <= last; i++ {
		bodies = append(bodies, strconv.Itoa(i))
	}
	if _, err := m.client.SendMessages(t.Context(), "q", bodies, o); err != nil {
		t.Fatal(err)
	}
}

// bodies are those that the new queue holds, in order.
func (m *migration) bodies(t *testing.T) []string {
	t.Helper()
	entries, err := m.redis.Do(t.Context(), m.redis.B().Xrange().Key(m.prefix+"{to}").Start("-").End("+").Build()).AsXRange()
	if err != nil {
		t.Fatal(err)
	}
	bodies := make([]string, len(entries))
	for i, e := range entries {
		bodies[i] = e.FieldValues["body"]
	}
	return bodies
}

func (m *migration) count(t *testing.T, command, key string) int {
	t.Helper()
	n, err := m.redis.Do(t.Context(), m.redis.B().Arbitrary(command).Keys(key).Build()).AsInt64()
	if err != nil {
		t.Fatal(err)
	}
	return int(n)
}

// TestRSMQMigrateKilled kills it while its calls are on their way, and runs it again. Others send meanwhile.
func TestRSMQMigrateKilled(t *testing.T) {
	t.Parallel()
	const sent, delayed, late = 5000, 300, 50
	m := newMigration(t, rsmq.QueueOptions{})
	m.fill(t, 1, sent, rsmq.SendOptions{})
	m.fill(t, 1, delayed, rsmq.SendOptions{Delay: rsmq.Seconds(3600)})
	proxy := redistest.NewProxy(t, redistest.URL(t))
	proxy.Delay(20 * time.Millisecond)
	killed := m.command(t, proxy.URL())
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	redistest.WaitFor(t, 20*time.Second, "a part of the messages to be moved", func() bool { return m.count(t, "XLEN", m.prefix+"{to}") > sent/5 })
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait()
	if left := m.count(t, "ZCARD", m.ns+":q"); left <= delayed {
		t.Fatalf("%d messages were left when it was killed: too late", left)
	}
	m.fill(t, sent+1, sent+late, rsmq.SendOptions{})
	said := output(t, m.command(t, redistest.URL(t)))
	if !strings.HasPrefix(said, "moved ") || !strings.Contains(said, fmt.Sprintf(", %d delayed)", delayed)) {
		t.Errorf("it says %q", said)
	}
	bodies := m.bodies(t)
	if len(bodies) != sent+late {
		t.Fatalf("the new queue holds %d messages, want %d", len(bodies), sent+late)
	}
	for i, body := range bodies {
		if body != strconv.Itoa(i+1) {
			t.Fatalf("message %d is %q", i+1, body)
		}
	}
	const attributes = 7
	old, fields, due := m.count(t, "ZCARD", m.ns+":q"), m.count(t, "HLEN", m.ns+":q:Q"), m.count(t, "ZCARD", m.prefix+"{to}.delayed")
	if old != 0 || fields > attributes || due != delayed {
		t.Errorf("%d messages and %d fields are left of the old queue, %d messages delayed in the new one", old, fields, due)
	}
}

// Those in flight are waited for: one is deleted, one comes back.
func TestRSMQMigrateWaits(t *testing.T) {
	t.Parallel()
	m := newMigration(t, rsmq.QueueOptions{})
	m.fill(t, 1, 3, rsmq.SendOptions{})
	held, err := m.client.ReceiveMessages(t.Context(), "q", 2, rsmq.ReceiveOptions{VisibilityTimeout: rsmq.Seconds(3600)})
	if err != nil || len(held) != 2 {
		t.Fatal(held, err)
	}
	cmd := m.command(t, redistest.URL(t), "--in-flight", "wait", "--json", "--timeout", "30s")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	redistest.WaitFor(t, 10*time.Second, "the visible message to be moved", func() bool { return m.count(t, "XLEN", m.prefix+"{to}") == 1 })
	if ok, err := m.client.DeleteMessage(t.Context(), "q", held[0].ID); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if ok, err := m.client.ChangeMessageVisibility(t.Context(), "q", held[1].ID, 0); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if code := exitCode(t, cmd.Wait()); code != 0 {
		t.Fatalf("exit code %d, stderr %q", code, stderr.String())
	}
	want := fmt.Sprintf(`{"namespace":%q,"queue":"q","to":"to","visible":2,"delayed":0,"in_flight":0,"no_body":0}`+"\n", m.ns)
	if said := stderr.String(); stdout.String() != want || !strings.HasPrefix(said, "waiting for ") || !strings.HasSuffix(said, " in flight\n") {
		t.Errorf("stdout %q, stderr %q; want %q", stdout.String(), stderr.String(), want)
	}
	if got := m.bodies(t); len(got) != 2 || got[0] != "3" || got[1] != "2" {
		t.Errorf("the new queue holds %q", got)
	}
}

// It ends with its time, says what is left, and can be run again.
func TestRSMQMigrateWaitsNoLongerThanTimeout(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]func(*redistest.Proxy){
		"in a pause": func(*redistest.Proxy) {},
		"in a look":  (*redistest.Proxy).BlackHole,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMigration(t, rsmq.QueueOptions{})
			m.fill(t, 1, 2, rsmq.SendOptions{})
			if _, ok, err := m.client.ReceiveMessage(t.Context(), "q", rsmq.ReceiveOptions{VisibilityTimeout: rsmq.Seconds(3600)}); !ok || err != nil {
				t.Fatal(ok, err)
			}
			proxy := redistest.NewProxy(t, redistest.URL(t))
			cmd := m.command(t, proxy.URL(), "--in-flight", "wait", "--timeout", "3s")
			log, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			cmd.Stdout = io.Discard
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var stderr strings.Builder
			for lines := bufio.NewScanner(log); lines.Scan(); {
				fmt.Fprintln(&stderr, lines.Text())
				if lines.Text() == "waiting for 1 message in flight" {
					meanwhile(proxy)
				}
			}
			code := exitCode(t, cmd.Wait())
			for _, part := range []string{"stopped: 1 message moved so far; run it again to go on\n", "not done within 3s", "1 message is still in flight"} {
				if code != 1 || !strings.Contains(stderr.String(), part) {
					t.Errorf("exit code %d, stderr %q; want 1 and %q", code, stderr.String(), part)
				}
			}
		})
	}
}
