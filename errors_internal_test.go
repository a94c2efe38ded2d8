package xstreamq

import (
	"errors"
	"testing"

	"github.com/redis/rueidis/mock"
)

// Texts as Redis 6.2.16 and 7.0.15 send them.
func TestRedisErrorsAreKnownByTheirCode(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"NOGROUP No such key 'x' or consumer group 'g' script: 1d90, on @user_script:1.":           "NOGROUP",
		"ERR Error running script (call to f_1d90): @user_script:1: NOGROUP No such key 'x'":       "NOGROUP",
		"ERR Error running script (call to f_1d90): @user_script:1: ERR The ID specified is wrong": "ERR",
		"ERR no such key": "ERR",
		"ERR The user executing the script can't run this command or subcommand script: 1d90, on @user_script:1.": "ERR",
		"OOM command not allowed when used memory > 'maxmemory'.":                                                 "OOM",
	} {
		err := mock.Result(mock.RedisError(text)).Error()
		if got := redisCode(err); got != want {
			t.Errorf("%q has code %q, not %q", text, got, want)
		}
	}
	if got := redisCode(errors.New("OOM")); got != "" {
		t.Errorf("an error that is not Redis's has code %q", got)
	}
	if !groupGone(mock.Result(mock.RedisError("ERR no such key")).Error()) {
		t.Error("a missing key is no missing group")
	}
	denied := mock.Result(mock.RedisError("ERR The user executing the script can't access at least one of the keys")).Error()
	if !permanent(denied) {
		t.Error("a command denied in a script will be allowed by waiting")
	}
}
