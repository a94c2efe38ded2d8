package rediserr_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/redis/rueidis/mock"

	"github.com/xstreamq/xstreamq/internal/rediserr"
)

func answered(text string) error { return mock.Result(mock.RedisError(text)).Error() }

// Texts as Redis 6.2.16, 7.0.15, 7.2.6 and 8.0 send them.
func TestRedisErrorsAreKnownByTheirCode(t *testing.T) {
	t.Parallel()
	const sha = "189dff53ec6d44d092cca623ec62a70a1bf53fc4"
	for text, want := range map[string]struct {
		code, readable string
		inScript       bool
	}{
		"NOGROUP No such key 'x' or consumer group 'g' script: " + sha + ", on @user_script:1.": {
			"NOGROUP", "NOGROUP No such key 'x' or consumer group 'g'", false,
		},
		"ERR Error running script (call to f_" + sha + "): @user_script:1: NOGROUP No such key 'x'": {
			"NOGROUP", "NOGROUP No such key 'x'", false,
		},
		"ERR Error running script (call to f_" + sha + "): @user_script:1: ERR The ID specified is wrong": {
			"ERR", "ERR The ID specified is wrong", false,
		},
		"ERR no such key": {"ERR", "no such key", false},
		"OOM command not allowed when used memory > 'maxmemory'.": {
			"OOM", "OOM command not allowed when used memory > 'maxmemory'.", false,
		},
		"ERR The user executing the script can't run this command or subcommand script: " + sha + ", on @user_script:86.": {
			"NOPERM", "The user executing the script can't run this command or subcommand", true,
		},
		"ERR Error running script (call to f_" + sha + "): @user_script:1: @user_script: 1: " +
			"The user executing the script can't access at least one of the keys mentioned in the command arguments ": {
			"NOPERM", "The user executing the script can't access at least one of the keys mentioned in the command arguments ", true,
		},
		"NOPERM ACL failure in script: User looker has no permissions to run the 'zcard' command script: " + sha + ", on @user_script:1.": {
			"NOPERM", "NOPERM ACL failure in script: User looker has no permissions to run the 'zcard' command", true,
		},
		"ERR ACL failure in script: User looker has no permissions to run the 'zcard' command script: " + sha + ", on @user_script:1.": {
			"NOPERM", "ACL failure in script: User looker has no permissions to run the 'zcard' command", true,
		},
		"ERR Error running script (call to f_" + sha + "): @user_script:14: @user_script: 14: -OOM command not allowed": {
			"OOM", "OOM command not allowed", false,
		},
		"-OOM command not allowed": {"OOM", "-OOM command not allowed", false},
		"NOPERM this user has no permissions to run the 'xinfo' command or its subcommand": {
			"NOPERM", "NOPERM this user has no permissions to run the 'xinfo' command or its subcommand", false,
		},
	} {
		err := fmt.Errorf("depth: %w", answered(text))
		if got := rediserr.Code(err); got != want.code {
			t.Errorf("%q has code %q, not %q", text, got, want.code)
		}
		if got := rediserr.Readable(err.Error()); got != "depth: "+want.readable {
			t.Errorf("%q reads %q, not %q", text, got, want.readable)
		}
		if got := rediserr.DeniedInScript(err); got != want.inScript {
			t.Errorf("%q: denied in a script: %v", text, got)
		}
	}
}

func TestOtherErrorsHaveNoCode(t *testing.T) {
	t.Parallel()
	for _, err := range []error{nil, errors.New("OOM"), mock.Result(mock.RedisNil()).Error()} {
		if got := rediserr.Code(err); got != "" || rediserr.DeniedInScript(err) {
			t.Errorf("%v has code %q", err, got)
		}
	}
}
