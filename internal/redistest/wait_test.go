package redistest

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

// failingTB records that a helper failed the test, and ends the goroutine as a real test would.
type failingTB struct {
	testing.TB
	failure string
	logged  string
}

func (tb *failingTB) Helper() {}

func (tb *failingTB) Logf(format string, args ...any) { tb.logged += fmt.Sprintf(format, args...) }

func (tb *failingTB) Fatal(args ...any) {
	tb.failure = fmt.Sprint(args...)
	runtime.Goexit()
}

func (tb *failingTB) Fatalf(format string, args ...any) { tb.Fatal(fmt.Sprintf(format, args...)) }

// inTest runs call as a test of its own would and returns what it did to that test.
func inTest(tb testing.TB, call func(testing.TB)) *failingTB {
	tb.Helper()
	recorded := &failingTB{TB: tb}
	done := make(chan struct{})
	go func() {
		defer close(done)
		call(recorded)
	}()
	<-done
	return recorded
}

func wantContains(tb testing.TB, text, want string) {
	tb.Helper()
	if !strings.Contains(text, want) {
		tb.Errorf("%q is not in: %s", want, text)
	}
}

func TestWaitForReturnsWhenTheConditionHolds(t *testing.T) {
	t.Parallel()
	calls := 0
	WaitFor(t, time.Minute, "the third look", func() bool {
		calls++
		return calls == 3
	})
	if calls != 3 {
		t.Errorf("looked %d times, want 3", calls)
	}
}

func TestWaitForNamesWhatDidNotHappen(t *testing.T) {
	t.Parallel()
	recorded := inTest(t, func(tb testing.TB) {
		tb.Helper()
		WaitFor(tb, 30*time.Millisecond, "a message that never comes", func() bool { return false })
	})
	wantContains(t, recorded.failure, "a message that never comes")
	wantContains(t, recorded.failure, "30ms")
}
