package cli

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

// running reports whether a process runs. One that has ended and that nobody has waited for does not.
func running(pid string) bool {
	about, err := os.ReadFile("/proc/" + pid + "/stat")
	_, state, _ := strings.Cut(string(about), ") ")
	return err == nil && !strings.HasPrefix(state, "Z")
}

// A worker that is killed takes its commands along, which would else work on beside the next delivery of their messages. What
// other commands have left behind is not concerned.
func TestWorkKilledTakesItsCommandsAlong(t *testing.T) {
	t.Parallel()
	p := sharedPlace(t)
	const long = 3
	p.send(t, "leave")
	for range long {
		p.send(t, "stay")
	}
	cmd := begin(t, p.work(t, `read -r what; trap '' TERM
		case $what in
		leave) sleep 600 >/dev/null 2>&1 & echo $! >"$DIR/left" ;;
		*) echo $$ >"$DIR/$XSTREAMQ_ID.pid"; exec sleep 600 ;;
		esac`, "--concurrency", strconv.Itoa(long)))
	left := awaitFile(t, cmd.Dir, "left")
	var files []string
	redistest.WaitFor(t, soon, "the commands", func() bool {
		files, _ = filepath.Glob(filepath.Join(cmd.Dir, "*.pid")) // the pattern is a good one
		return len(files) == long
	})
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for _, file := range files {
		pid := awaitFile(t, cmd.Dir, filepath.Base(file))
		redistest.WaitFor(t, soon, "the end of command "+pid, func() bool { return !running(pid) })
	}
	killLeft(t, left)
}
