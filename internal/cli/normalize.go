package cli

import (
	"net/netip"
	"regexp"
	"strings"
	"time"
	"unicode"
)

// What normalize reads of an error, and what it keeps, in bytes.
const (
	lineRead = 1024
	lineKept = 160
)

// normalize turns an error into what it has in common with others of its kind: its first line, in which a placeholder stands for
// whatever differs from message to message. The number in "status 500" or "SQLSTATE 23505" says what went wrong, and stays.
func normalize(text string) string {
	line := firstLine(text)
	if len(line) > lineRead {
		line = line[:lineRead]
	}
	line = strings.ToValidUTF8(line, "\uFFFD")
	if strings.Contains(line, "\x1b") {
		line = colors.ReplaceAllString(line, "")
	}
	if strings.ContainsAny(line, "\"'`") {
		line = quoted.ReplaceAllString(line, "<string>")
	}
	words := strings.Fields(line)
	before := ""
	for i, word := range words {
		// Most words have nothing to replace, and the expressions are slow.
		if strings.ContainsAny(word, "0123456789@") && !isCode(before, word) {
			words[i] = replaceVariables(word)
		}
		before = word
	}
	return preview(strings.Join(words, " "), lineKept)
}

// firstLine is the first line of a text that is not empty.
func firstLine(text string) string {
	text = strings.TrimLeft(text, " \t\r\n")
	if end := strings.IndexAny(text, "\r\n"); end >= 0 {
		text = text[:end]
	}
	return text
}

// colors finds what colors a log line.
var colors = regexp.MustCompile("\x1b\\[[0-9;]*m")

// quoted finds strings in quotes, but not between the apostrophes of "can't" and "won't".
var quoted = regexp.MustCompile("\"(?:[^\"\\\\]|\\\\.)*\"|\\B'(?:[^'\\\\]|\\\\.)*'\\B|`[^`]*`")

// codeWords come before a number that tells errors apart.
var codeWords = map[string]bool{
	"status": true, "code": true, "errno": true, "error": true, "http": true, "http/1.1": true, "http/2": true, "http/2.0": true, "sqlstate": true,
}

// isCode reports a short number after a word such as status.
func isCode(before, word string) bool {
	if !codeWords[strings.ToLower(strings.TrimFunc(before, unicode.IsPunct))] {
		return false
	}
	word = strings.TrimFunc(word, unicode.IsPunct)
	return len(word) <= 5 && strings.Trim(word, "0123456789") == ""
}

// variables are what differs from one error to the next, tried in this order at each place of a word. The last one is any run of
// letters and digits.
var variables = []struct{ placeholder, pattern string }{
	{"", `(?i:status|code|errno)[=:]\d{1,5}\b`},
	{"<email>", `[\w.+-]+@[\w-]+(?:\.[\w-]+)+`},
	{"<uuid>", `\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b`},
	{"<time>", `\b\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?\b|\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b`},
	{"<addr>", `\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b|\[[0-9a-fA-F.]*:[0-9a-fA-F:.]*(?:%\w+)?\](?::\d+)?`},
	{"<hex>", `\b0[xX][0-9a-fA-F]+\b`},
	{"<duration>", `\b(?:\d+(?:\.\d+)?(?:ns|us|µs|μs|ms|h|m|s))+\b`},
	{"<id>", `\bd?\d{13}-\w+\b`},
	{"<n>", `\b\d+(?:[.,]\d+)+\b`},
	{"", `[0-9A-Za-z]+`},
}

var variable = joinVariables()

func joinVariables() *regexp.Regexp {
	patterns := make([]string, len(variables))
	for i, v := range variables {
		patterns[i] = "(" + v.pattern + ")"
	}
	return regexp.MustCompile(strings.Join(patterns, "|"))
}

func replaceVariables(word string) string {
	if plain, ok := replacePlain(word); ok {
		return plain
	}
	var b strings.Builder
	done := 0
	for _, at := range variable.FindAllStringSubmatchIndex(word, -1) {
		b.WriteString(word[done:at[0]])
		found := word[at[0]:at[1]]
		for i, v := range variables {
			if at[2+2*i] < 0 {
				continue
			}
			switch {
			case v.placeholder != "":
				b.WriteString(v.placeholder)
			case i == 0:
				b.WriteString(found)
			default:
				b.WriteString(replaceRun(found))
			}
			break
		}
		done = at[1]
	}
	b.WriteString(word[done:])
	return b.String()
}

// alphanumeric are the letters and digits of ids.
const alphanumeric = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// replacePlain is a short way for words that are one thing alone, as most are; the punctuation around it stays.
func replacePlain(word string) (replaced string, ok bool) {
	thing := strings.Trim(word, ",;:()")
	if thing == "" || strings.HasPrefix(thing, "0x") || strings.HasPrefix(thing, "0X") {
		return "", false
	}
	var replacement string
	switch last := thing[len(thing)-1]; {
	case last >= '0' && last <= '9' && isAddress(thing):
		replacement = "<addr>"
	case strings.IndexByte("smh", last) >= 0 && isDuration(thing):
		replacement = "<duration>"
	case strings.Trim(thing, alphanumeric) == "":
		replacement = replaceRun(thing)
	default:
		return "", false
	}
	return strings.Replace(word, thing, replacement, 1), true
}

func isAddress(s string) bool {
	if _, err := netip.ParseAddrPort(s); err == nil {
		return true
	}
	_, err := netip.ParseAddr(s)
	return err == nil
}

func isDuration(s string) bool {
	_, err := time.ParseDuration(s)
	return err == nil
}

// replaceRun looks at a run of letters and digits. A number, a hash or a random id goes; of a name such as utf8 or user42 the
// digits alone go.
func replaceRun(run string) string {
	digits, numbers, hex := 0, 0, true
	inNumber := false
	for _, c := range []byte(run) {
		isDigit := c >= '0' && c <= '9'
		if isDigit {
			digits++
			if !inNumber {
				numbers++
			}
		}
		inNumber = isDigit
		hex = hex && (isDigit || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F')
	}
	switch {
	case digits == 0:
		return run
	case digits == len(run):
		return "<n>"
	case hex && len(run) >= 8:
		return "<hex>"
	case numbers > 1 || len(run) >= 16:
		return "<id>"
	}
	start := strings.IndexAny(run, "0123456789")
	return run[:start] + "<n>" + run[start+digits:]
}
