// Package rediserr reads what Redis answers instead of a result: the same mistake has other words on each version, and others again
// where it was made in a script.
package rediserr

import (
	"errors"
	"regexp"
	"strings"

	"github.com/redis/rueidis"
)

// Code is the first word of a Redis error, which is stable across versions; the rest of the text is not. ERR stands for those that
// have no code of their own, NOPERM also for a command that the user may not run in a script. It is empty for an error that did not
// come from Redis, and for nil. Errors that were wrapped are looked into.
func Code(err error) string {
	text := answer(err)
	if DeniedInScript(err) {
		return "NOPERM"
	}
	code, _, _ := strings.Cut(strings.TrimPrefix(text, "-"), " ") // 6.2 has a dash before what it refuses in a script
	if code != strings.ToUpper(code) {
		return "ERR" // rueidis takes it off
	}
	return code
}

// DeniedInScript reports that a script was ended because the user may not run one of its commands, or not on that key, which
// Redis does not name.
func DeniedInScript(err error) bool {
	text := answer(err)
	return strings.Contains(text, "executing the script can't") || // before 7.2
		strings.Contains(text, "ACL failure in script") // without a code; some say NOPERM before it
}

// answer is what Redis said, or "".
func answer(err error) string {
	var said *rueidis.RedisError // rueidis.IsRedisErr does not look into an error that was wrapped
	if !errors.As(err, &said) || said.IsNil() {
		return ""
	}
	return Readable(said.Error())
}

// scriptPlace is where in a script something went wrong, as Redis 7 says after an error, and Redis 6.2 before it.
var scriptPlace = regexp.MustCompile(`,? script: [0-9a-f]+, on @user_script:\d+\.?` +
	`|(?:Error running script \(call to f_[0-9a-f]+\): )?(?:@user_script: ?\d+: )+-?`)

// Readable takes out of a text what Redis says of the place in a script where something went wrong, which tells nobody anything.
func Readable(text string) string {
	if !strings.Contains(text, "@user_script:") {
		return text
	}
	return scriptPlace.ReplaceAllLiteralString(text, "")
}
