package cli

import (
	"bufio"
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

// With --json each dead letter is a line while the others are still dead; when nobody reads them any more, the rest stays.
func TestRedrivePrintsWhileItGoes(t *testing.T) {
	t.Parallel()
	d := newDeadGroup(t, 2000)
	cmd := d.command(t, redistest.URL(t), "dlq", "redrive", "q", "g", "--yes", "--rate", "200", "--json")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	lines := bufio.NewScanner(stdout)
	for i := range 50 {
		if !lines.Scan() || !strings.HasSuffix(lines.Text(), `","result":"redriven"}`) {
			t.Fatalf("line %d is %q, %v", i+1, lines.Text(), lines.Err())
		}
	}
	if n := d.length(t, ".g.dlq"); n < d.dead/2 {
		t.Errorf("50 lines are there when %d are dead of %d", n, d.dead)
	}
	_ = stdout.Close()
	if code := exitCode(t, cmd.Wait()); code != exitFailed || d.length(t, ".g.dlq") == 0 {
		t.Errorf("exit code %d, %d are dead", code, d.length(t, ".g.dlq"))
	}
	want := fmt.Sprintf("stopped: %s redriven so far; run it again to go on\n", deadLetters(d.length(t, ".g.retry")))
	if stderr.String() != want {
		t.Errorf("it says %q, want %q", stderr.String(), want)
	}
}
