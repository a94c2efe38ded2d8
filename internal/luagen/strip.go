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

// origin returns where line n of code came from. The parser counts from 1, and
// gives -1 for the end of the text.
func origin(code []codeLine, n int) position {
	if n < 1 || n > len(code) {
		n = len(code)
	}
	return code[n-1].at
}

var longBracket = regexp.MustCompile(`^\[=*\[`)

const noLongComment = "long comments are not supported: start every line with --"

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
		case !plain(c):
			return 0, notPlain(c)
		case longBracket.MatchString(line[i:]):
			return 0, "long strings are not supported: use quotes"
		case strings.HasPrefix(line[i:], "--"):
			if longBracket.MatchString(line[i+2:]) {
				return 0, noLongComment
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

// plain reports whether code may hold c: a Go raw string can.
func plain(c byte) bool { return c == '\t' || ' ' <= c && c <= '~' }

func notPlain(c byte) string {
	return fmt.Sprintf(`byte 0x%02x in the code: write it as an escape, "\%03d"`, c, c)
}

// quoted returns the length of the quoted string that s starts with.
func quoted(s string) (n int, complaint string) {
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case !plain(c):
			return 0, notPlain(c)
		case c == s[0]:
			return i + 1, ""
		case c == '\\':
			if i+1 < len(s) && !strings.ContainsRune(`abfnrtv\"'0123456789`, rune(s[i+1])) {
				return 0, fmt.Sprintf(`escape \%c is not Lua 5.1: use \ddd, decimal`, s[i+1])
			}
			i++
		}
	}
	return 0, "the string does not end on its line"
}
