package xstreamq_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// shellProducer is the program of the contract, with a redis-cli on its PATH that knows where the server is. It skips the test where
// there is none.
func shellProducer(t *testing.T, addr string) func(queue string, messages int) (ids []string, errOut string, code int) {
	t.Helper()
	client, err := exec.LookPath("redis-cli")
	if err != nil {
		t.Skip("SKIPPED: redis-cli is not on PATH, so the shell producer of docs/contract.md was not run")
	}
	_, section, _ := strings.Cut(readDoc(t, "docs/contract.md"), "\n## Publishing from a shell\n")
	blocks := docBlocks(section)
	if len(blocks) == 0 || blocks[0].language != "bash" {
		t.Fatal("docs/contract.md has no shell producer")
	}
	dir := t.TempDir()
	_, port, _ := strings.Cut(addr, ":")
	script := fmt.Sprintf("#!/bin/sh\nexec '%s' -p %s \"$@\"\n", client, port)
	if err := os.WriteFile(filepath.Join(dir, "redis-cli"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return func(queue string, messages int) (ids []string, errOut string, code int) {
		t.Helper()
		shell := exec.CommandContext(t.Context(), "sh", "-c", blocks[0].text, "publish", queue, fmt.Sprint(messages))
		shell.Env = append(os.Environ(), "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"))
		var out, problems bytes.Buffer
		shell.Stdout, shell.Stderr = &out, &problems
		err := shell.Run()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return strings.Fields(out.String()), problems.String(), shell.ProcessState.ExitCode()
	}
}

// P1 with a producer that is a few lines of shell: every id that it printed reaches the handler, with its body.
func TestShellProducer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	const messages = 150
	client, err := xstreamq.Open(server.URL(), xstreamq.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	orders, err := xstreamq.NewQueue[Order](client, "orders")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	handled := map[string]int{}
	if _, err := orders.Subscribe("shipping", func(_ context.Context, m *xstreamq.Message[Order]) error {
		mu.Lock()
		defer mu.Unlock()
		handled[m.OriginalID] = m.Body.ID
		return nil
	}, xstreamq.SubscribeOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := client.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	ids, errOut, code := shellProducer(t, server.Addr())("orders", messages)
	if code != 0 || errOut != "" || len(ids) != messages {
		t.Fatalf("exit code %d, %d ids, %s", code, len(ids), errOut)
	}
	want := map[string]int{}
	for i, id := range ids {
		want[id] = i + 1
	}
	redistest.WaitFor(t, 60*time.Second, "all messages", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(handled) >= messages
	})
	if err := client.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, handled); diff != "" {
		t.Errorf("(-published +handled):\n%s", diff)
	}
}

// The shell producer tells what was refused from what got no answer.
func TestShellProducerSaysWhatWentWrong(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	proxy := redistest.NewProxy(t, server.Addr())
	client := redistest.Dial(t, server.URL())
	if err := client.Do(t.Context(), client.B().Set().Key("{orders}").Value("no stream").Build()).Error(); err != nil {
		t.Fatal(err)
	}
	publish := shellProducer(t, proxy.Addr())
	if ids, errOut, code := publish("orders", 3); code != 1 || len(ids) > 0 || !strings.Contains(errOut, "message 1: refused, so it is not stored: WRONGTYPE") {
		t.Errorf("a key of the wrong type: exit code %d, ids %q, %s", code, ids, errOut)
	}
	proxy.CutAfterRequest([]byte(`{"id":2}`))
	ids, errOut, code := publish("others", 3)
	if code != 2 || len(ids) != 1 || !strings.Contains(errOut, "message 2: no answer") {
		t.Errorf("a reply that was lost: exit code %d, ids %q, %s", code, ids, errOut)
	}
	if n, err := client.Do(t.Context(), client.B().Xlen().Key("{others}").Build()).AsInt64(); err != nil || n != 2 {
		t.Errorf("%d messages are stored, %v", n, err)
	}
	proxy.Refuse()
	if ids, errOut, code := publish("others", 3); code != 2 || len(ids) > 0 || !strings.Contains(errOut, "message 1: no answer") {
		t.Errorf("no server: exit code %d, ids %q, %s", code, ids, errOut)
	}
}
