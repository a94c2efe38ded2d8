package xstreamq

import (
	"context"
	"testing"

	"github.com/redis/rueidis/mock"
)

// What redisCode knows is tested where it comes from.
func TestErrorsThatNeedMoreThanTheirCode(t *testing.T) {
	t.Parallel()
	if !groupGone(mock.Result(mock.RedisError("ERR no such key")).Error()) {
		t.Error("a missing key is no missing group")
	}
	denied := mock.Result(mock.RedisError("ERR The user executing the script can't access at least one of the keys")).Error()
	if !permanent(denied) {
		t.Error("a command denied in a script will be allowed by waiting")
	}
}

// An error names a key where Redis can have meant no other.
func TestKeyIsNamedWhereItIsKnown(t *testing.T) {
	t.Parallel()
	const named = "key {q}: "
	for text, want := range map[string]string{
		"WRONGTYPE Operation against a key":                             named,
		"NOPERM this user has no permissions to access one of the keys": named,
		"ERR no such key": named,
		"XQTYPE key {q} holds a list, not a stream":                                                                              "",
		"ERR The user executing the script can't run this command or subcommand":                                                 "",
		"ERR The user executing the script can't access at least one of the keys of":                                             "",
		"ERR Error running script (call to f_1d): @user_script:1: @user_script: 1: The user executing the script can't run this": "",
	} {
		answer := mock.Result(mock.RedisError(text)).Error()
		if got := keyError("{q}", answer).Error(); got != want+answer.Error() {
			t.Errorf("%q becomes %q", text, got)
		}
	}
	if err := keyError("{q}", context.Canceled); err != context.Canceled { //nolint:errorlint // it is the very same
		t.Errorf("an error that is not of Redis becomes %v", err)
	}
}
