package redistest

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/rueidis"
)

func TestPrefixIsValidAndUnique(t *testing.T) {
	t.Parallel()
	t.Run("a name/with ünusual *[chars]? that goes on and on and on and on and on and on", func(t *testing.T) {
		t.Parallel()
		first, second := Prefix(t), Prefix(t)
		if first == second {
			t.Errorf("two prefixes are the same: %s", first)
		}
		if valid := regexp.MustCompile(`^[A-Za-z0-9_.:@-]{1,63}:$`); !valid.MatchString(first) {
			t.Errorf("%q is no valid prefix", first)
		}
	})
}

// endingTB lets a test end earlier than it does.
type endingTB struct {
	testing.TB
	cleanups []func()
}

func (tb *endingTB) Cleanup(f func()) { tb.cleanups = append(tb.cleanups, f) }

func (tb *endingTB) end() {
	for _, f := range tb.cleanups {
		f()
	}
}

func TestPrefixRemovesItsKeysOnly(t *testing.T) {
	t.Parallel()
	const keys = 2*scanCount + 1 // more than one page
	client := Client(t)
	beside := Prefix(t)
	set(t, client, beside+"key", "not under the prefix")

	writer := &endingTB{TB: t}
	prefix := Prefix(writer)
	commands := make(rueidis.Commands, 0, keys)
	for i := range keys {
		commands = append(commands, client.B().Set().Key(prefix+"{q}."+strconv.Itoa(i)).Value("v").Build())
	}
	for _, result := range client.DoMulti(context.Background(), commands...) {
		if err := result.Error(); err != nil {
			t.Fatal(err)
		}
	}
	writer.end()
	if got := count(t, client, prefix+"*"); got != 0 {
		t.Errorf("%d keys are left under %s", got, prefix)
	}
	if got := get(t, client, beside+"key"); got == "" {
		t.Error("a key beside the prefix was removed")
	}
}

func count(tb testing.TB, client rueidis.Client, pattern string) int {
	tb.Helper()
	found, err := client.Do(context.Background(), client.B().Keys().Pattern(pattern).Build()).AsStrSlice()
	if err != nil {
		tb.Fatal(err)
	}
	return len(found)
}

func TestDialFailsTheTestWithoutThePassword(t *testing.T) {
	t.Parallel()
	server := Start(t, Options{})
	server.Kill()
	recorded := inTest(t, func(tb testing.TB) {
		tb.Helper()
		Dial(tb, "redis://:secret@"+server.Addr())
	})
	wantContains(t, recorded.failure, server.Addr())
	if strings.Contains(recorded.failure, "secret") {
		t.Errorf("the password is in the failure: %s", recorded.failure)
	}
}
