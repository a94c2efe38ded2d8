package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/rueidis"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

// redisTimeout bounds a command of a script; no script needs that long.
const redisTimeout = 30 * time.Second

func scriptRedis(ts *testscript.TestScript, neg bool, args []string) {
	answer, err := askRedis(ts, args)
	var refusal *rueidis.RedisError
	switch {
	case err == nil && neg:
		ts.Fatalf("unexpected success: %s", answer)
	case err == nil:
		fmt.Fprint(ts.Stdout(), answer)
	case neg && errors.As(err, &refusal):
		fmt.Fprintln(ts.Stderr(), refusal)
	default:
		ts.Fatalf("%v", err)
	}
}

// askRedis sends one command to the script's server and returns the answer as lines.
func askRedis(ts *testscript.TestScript, args []string) (string, error) {
	var last []string
	if len(args) > 1 && args[0] == "-x" {
		last, args = []string{ts.ReadFile(args[1])}, args[2:]
	}
	if len(args) == 0 {
		ts.Fatalf("usage: redis [-x FILE] COMMAND ARG...")
	}
	words := make([]string, 0, len(args)+1)
	for _, arg := range args {
		words = append(words, unescape(arg))
	}
	words = append(words, last...)
	server := ts.Value(scriptServer{}).(*redistest.Server)
	client, err := redistest.Open(server.URL())
	if err != nil {
		return "", err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), redisTimeout)
	defer cancel()
	message, err := client.Do(ctx, client.B().Arbitrary(words...).Build()).ToMessage()
	if err != nil && !rueidis.IsRedisNil(err) {
		return "", err
	}
	var text strings.Builder
	writeAnswer(&text, "", message)
	return text.String(), nil
}

// writeAnswer prints a value per line, deeper ones indented; maps as names and values in turn.
func writeAnswer(w io.Writer, indent string, m rueidis.RedisMessage) {
	switch {
	case m.IsNil():
		fmt.Fprintf(w, "%s(nil)\n", indent)
	case m.IsInt64():
		n, _ := m.ToInt64()
		fmt.Fprintf(w, "%s%d\n", indent, n)
	case m.IsArray():
		values, _ := m.ToArray()
		for _, v := range values {
			deeper := indent
			if v.IsArray() || v.IsMap() {
				deeper += "  "
			}
			writeAnswer(w, deeper, v)
		}
	case m.IsMap():
		values, _ := m.ToMap()
		for _, name := range slices.Sorted(maps.Keys(values)) {
			fmt.Fprintf(w, "%s%s\n", indent, printable(name))
			writeAnswer(w, indent, values[name])
		}
	case m.IsFloat64():
		f, _ := m.AsFloat64()
		fmt.Fprintf(w, "%s%v\n", indent, f)
	case m.IsBool():
		b, _ := m.AsBool()
		fmt.Fprintf(w, "%s%v\n", indent, b)
	default:
		s, _ := m.ToString()
		fmt.Fprintf(w, "%s%s\n", indent, printable(s))
	}
}

var escapes = regexp.MustCompile(`\\(x[0-9a-fA-F]{2}|[nrt\\])`)

// unescape gives a word of a script any bytes.
func unescape(word string) string {
	return escapes.ReplaceAllStringFunc(word, func(escape string) string {
		switch escape[1] {
		case 'n':
			return "\n"
		case 'r':
			return "\r"
		case 't':
			return "\t"
		case '\\':
			return `\`
		}
		b, _ := strconv.ParseUint(escape[2:], 16, 8)
		return string([]byte{byte(b)})
	})
}

func scriptAwait(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 4 || args[2] != "redis" {
		ts.Fatalf("usage: await SECONDS PATTERN redis ARG...")
	}
	seconds, err := strconv.ParseFloat(args[0], 64)
	ts.Check(err)
	pattern, err := regexp.Compile(`(?m)` + args[1])
	ts.Check(err)
	deadline := time.Now().Add(time.Duration(seconds * float64(time.Second)))
	for {
		answer, err := askRedis(ts, args[3:])
		if err == nil && pattern.MatchString(answer) {
			fmt.Fprint(ts.Stdout(), answer)
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("no answer matched in %s s; the last one: %s %v", args[0], answer, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func scriptSignal(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]os.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL}
	if neg || len(args) != 1 || signals[args[0]] == nil {
		ts.Fatalf("usage: signal INT|TERM|KILL")
	}
	for _, cmd := range ts.BackgroundCmds() {
		ts.Check(cmd.Process.Signal(signals[args[0]]))
	}
}

// notJSONLine says what keeps a line from being one JSON object, safe on a terminal.
func notJSONLine(line []byte) string {
	var object map[string]any
	text := strings.TrimSuffix(string(line), "\n")
	switch {
	case text == string(line):
		return "has a line that does not end"
	case json.Unmarshal(line, &object) != nil:
		return "has a line that is not a JSON object"
	case printable(text) != text:
		return "has a line that is not safe on a terminal"
	}
	return ""
}
