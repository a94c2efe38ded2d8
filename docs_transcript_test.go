package xstreamq_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// transcriptStep is one command of a document with what it answers, or a place where the test does something.
type transcriptStep struct {
	line    int
	command string
	answer  string
	does    string
}

var transcriptPlace = regexp.MustCompile(`^<!-- transcript: (.*) -->$`)

func transcriptOf(text string) []transcriptStep {
	var steps []transcriptStep
	inside := false
	for i, line := range strings.Split(text, "\n") {
		command, isCommand := strings.CutPrefix(line, "$ ")
		switch place := transcriptPlace.FindStringSubmatch(line); {
		case strings.HasPrefix(line, "```"):
			inside = line == "```console"
		case place != nil:
			steps = append(steps, transcriptStep{line: i + 1, does: place[1]})
		case inside && isCommand:
			steps = append(steps, transcriptStep{line: i + 1, command: command})
		case inside:
			steps[len(steps)-1].answer += line + "\n"
		}
	}
	return steps
}

// What differs from run to run: server times and stream ids, and the nonce of a consumer.
var transcriptVolatile = regexp.MustCompile(`\d{13}(-\d+)?|\b[0-9a-f]{16}\b`)

// transcript plays a document against a server. It maps what is volatile in the text to what this run got instead: the same
// id in the text must be the same id here.
type transcript struct {
	t    *testing.T
	send func(command string) string
	work func()
	here map[string]string
}

func (tr *transcript) play(steps []transcriptStep) {
	for _, step := range steps {
		if step.does != "" {
			if step.does != "the worker runs" {
				tr.t.Fatalf("line %d: unknown step %q", step.line, step.does)
			}
			tr.work()
			continue
		}
		got := tr.send(transcriptVolatile.ReplaceAllStringFunc(step.command, func(s string) string {
			if here, ok := tr.here[s]; ok {
				return here
			}
			return s
		}))
		tr.compare(step, got)
	}
}

func (tr *transcript) compare(step transcriptStep, got string) {
	tr.t.Helper()
	const hole = "<volatile>"
	if diff := cmp.Diff(transcriptVolatile.ReplaceAllString(step.answer, hole), transcriptVolatile.ReplaceAllString(got, hole)); diff != "" {
		tr.t.Errorf("line %d: %s (-text +answer):\n%s\nthe answer:\n%s", step.line, step.command, diff, got)
		return
	}
	written := transcriptVolatile.FindAllString(step.answer, -1)
	for i, here := range transcriptVolatile.FindAllString(got, -1) {
		if known, ok := tr.here[written[i]]; ok && known != here {
			tr.t.Errorf("line %d: %s: %s stood for %s before, and now for %s", step.line, step.command, written[i], known, here)
		}
		tr.here[written[i]] = here
	}
}

// The redis-cli transcripts of the contract are true, word for word: with redis-cli, where there is one, and with a plain
// client that prints like it. Those of other documents are the command line's to test.
func TestDocumentedTranscripts(t *testing.T) {
	t.Parallel()
	senders := map[string]func(*testing.T, *redistest.Server) func(string) string{"plain client": plainSender}
	if _, err := exec.LookPath("redis-cli"); err == nil {
		senders["redis-cli"] = cliSender
	} else {
		t.Log("redis-cli is not on PATH: its commands are sent by a plain client only")
	}
	for name, sender := range senders {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			steps := transcriptOf(readDoc(t, "docs/contract.md"))
			if len(steps) < 4 {
				t.Fatalf("%d steps", len(steps))
			}
			server := redistest.Start(t, redistest.Options{})
			tr := transcript{t: t, send: sender(t, server), here: map[string]string{}}
			tr.work = func() { transcriptWorker(t, server.URL()) }
			tr.play(steps)
		})
	}
}

// transcriptWorker is the worker of the documents: group shipping, no retries, and order 1 is out of stock. It runs until
// nothing is left to do.
func transcriptWorker(t *testing.T, url string) {
	t.Helper()
	client, err := xstreamq.Open(url, xstreamq.Config{ConsumerName: "host-42", CompactEvery: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	orders, err := xstreamq.NewQueue[Order](client, "orders")
	if err != nil {
		t.Fatal(err)
	}
	_, err = orders.Subscribe("shipping", func(_ context.Context, m *xstreamq.Message[Order]) error {
		if m.Body.ID == 1 {
			return errors.New("out of stock")
		}
		return nil
	}, xstreamq.SubscribeOptions{Concurrency: 1, MaxRetries: xstreamq.NoRetries})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	plain := redistest.Dial(t, url)
	redistest.WaitFor(t, 30*time.Second, "the worker to be done", func() bool {
		do := func(args ...string) rueidis.RedisResult {
			return plain.Do(t.Context(), plain.B().Arbitrary(args...).Build())
		}
		waiting, err := do("ZCARD", "{orders}.delayed").AsInt64()
		if err != nil || waiting > 0 {
			return false
		}
		groups, err := do("XINFO", "GROUPS", "{orders}").ToArray()
		if err != nil || len(groups) != 1 {
			return false
		}
		group, err := groups[0].AsMap()
		if err != nil {
			return false
		}
		newest, err := do("XREVRANGE", "{orders}", "+", "-", "COUNT", "1").AsXRange()
		if err != nil || len(newest) != 1 {
			return false
		}
		delivered, pending := group["last-delivered-id"], group["pending"]
		last, _ := delivered.ToString()
		left, err := pending.AsInt64()
		return err == nil && left == 0 && last == newest[0].ID
	})
	if err := client.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// cliSender has a shell run the line as it stands, with a redis-cli in front of the real one that says where the server is.
func cliSender(t *testing.T, server *redistest.Server) func(string) string {
	client, err := exec.LookPath("redis-cli")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	_, port, _ := strings.Cut(server.Addr(), ":")
	script := fmt.Sprintf("#!/bin/sh\nexec '%s' -p %s --no-raw \"$@\"\n", client, port)
	if err := os.WriteFile(filepath.Join(dir, "redis-cli"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return func(command string) string {
		shell := exec.CommandContext(t.Context(), "sh", "-c", command)
		shell.Env = append(os.Environ(), "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"))
		out, err := shell.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
		return string(out)
	}
}

func plainSender(t *testing.T, server *redistest.Server) func(string) string {
	options, err := rueidis.ParseURL(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	options.DisableCache, options.AlwaysRESP2 = true, true
	client, err := rueidis.NewClient(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return func(command string) string {
		words := shellWords(strings.TrimPrefix(command, "redis-cli "))
		answer, err := client.Do(t.Context(), client.B().Arbitrary(words...).Build()).ToMessage()
		if err != nil && !rueidis.IsRedisNil(err) {
			t.Fatalf("%s: %v", command, err)
		}
		return printed(answer, "")
	}
}

// shellWords splits a line at blanks outside single quotes.
func shellWords(line string) []string {
	var words []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			words = append(words, part)
		} else {
			words = append(words, strings.Fields(part)...)
		}
	}
	return words
}

// printed is an answer as redis-cli prints it.
func printed(m rueidis.RedisMessage, indent string) string {
	switch {
	case m.IsNil():
		return "(nil)\n"
	case m.IsInt64():
		n, _ := m.AsInt64()
		return fmt.Sprintf("(integer) %d\n", n)
	case m.IsArray():
		items, _ := m.ToArray()
		if len(items) == 0 {
			return "(empty array)\n"
		}
		width := len(strconv.Itoa(len(items)))
		inner := indent + strings.Repeat(" ", width+2)
		var out strings.Builder
		for i, item := range items {
			if i > 0 {
				out.WriteString(indent)
			}
			fmt.Fprintf(&out, "%*d) %s", width, i+1, printed(item, inner))
		}
		return out.String()
	}
	s, _ := m.ToString()
	if s == "OK" {
		return s + "\n" // the only status that the documents show
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + "\"\n"
}
