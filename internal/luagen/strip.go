package luagen

import (
	"fmt"
	"regexp"
	"strings"
)

// codeLine is a line of code and where it came from.
type codeLine struct {
	at   position
	text string
}

var longBracket = regexp.MustCompile(`^\[=*\[`)

// strip returns the code lines without comments, blank lines and trailing
// space. Long strings and comments are refused, so a line can be judged alone.
func strip(file string, lines []string, skip int, found *problems) []codeLine {
	var code []codeLine
	for i := skip; i < len(lines); i++ {
		at := position{file, i + 1}
		end, complaint := codeEnd(lines[i])
		if complaint != "" {
			found.add(at, "%s", complaint)
			continue
		}
		comment := strings.TrimSpace(strings.TrimPrefix(lines[i][end:], "--"))
		if strayPattern.MatchString(comment) {
			found.add(at, "declaration outside the header: the header ends at the first line without a comment")
		}
		if text := strings.TrimRight(lines[i][:end], " \t"); text != "" {
			code = append(code, codeLine{at, text})
		}
	}
	return code
}

// codeEnd returns where the code of a line ends and its comment begins, or what
// the line may not hold.
func codeEnd(line string) (end int, complaint string) {
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c != '\t' && (c < ' ' || c > '~'):
			return 0, fmt.Sprintf(`byte 0x%02x in the code: write it as an escape, "\%03d"`, c, c)
		case longBracket.MatchString(line[i:]):
			return 0, "long strings are not supported: use quotes"
		case strings.HasPrefix(line[i:], "--"):
			if longBracket.MatchString(line[i+2:]) {
				return 0, "long comments are not supported: start every line with --"
			}
			return i, ""
		case c == '"' || c == '\'':
			n, complaint := quoted(line[i:])
			if complaint != "" {
				return 0, complaint
			}
			i += n - 1
		}
	}
	return len(line), ""
}

// quoted returns the length of the quoted string that s starts with.
func quoted(s string) (n int, complaint string) {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case s[0]:
			return i + 1, ""
		case '\\':
			if i+1 < len(s) && !strings.ContainsRune(`abfnrtv\"'0123456789`, rune(s[i+1])) {
				return 0, fmt.Sprintf(`escape \%c is not Lua 5.1: use \ddd, decimal`, s[i+1])
			}
			i++
		}
	}
	return 0, "the string does not end on its line"
}
