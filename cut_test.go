package xstreamq_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

// cutsAtOnce is how many cuts are under way at once: they wait for deadlines most of the time.
const cutsAtOnce = 24

// cutKind is a place around a request where its connection is cut.
type cutKind struct {
	name string
	cut  redistest.Cut
}

// cutKinds begin with the one that takes longest: only deadlines end it.
var cutKinds = []cutKind{
	{"swallow", redistest.SwallowReply},
	{"before", redistest.BeforeRequest},
	{"after", redistest.AfterRequest},
	{"half", redistest.WithinReply},
	{"end", redistest.AfterReply},
}

// cutPoint is one request in the life of a message, and a scenario in which it is sent.
type cutPoint struct {
	name    string // of the subtest, and on the page
	request cutRequest
	allow   cutAllowance
	more    bool                   // the call sends further requests, which may fail for the same cut
	run     func(c *cutRun) string // returns what was seen
}

// cutRequest says by which parts a request is known.
type cutRequest struct {
	name  string // on the page
	parts []string
}

// cutCommand is a command, and what else is in its request.
func cutCommand(name string, parts ...string) cutRequest {
	return cutRequest{"`" + name + "`", append([]string{"\r\n" + name + "\r\n"}, parts...)}
}

// cutScript is a script, and what else is in its request. The server knows it, so it is sent by its digest.
func cutScript(name string, parts ...string) cutRequest {
	return cutRequest{"`" + name + ".lua`", append([]string{"\r\nEVALSHA\r\n", "{" + name + "}"}, parts...)}
}

// onQueue and onRetry are the group's name where it stands for one lane.
const (
	onQueue = "\r\n" + faultGroup + "\r\n"
	onRetry = "\r\n" + faultGroup + "-retry\r\n"
)

// cutAllowance bounds what a cut may cost each message of a scenario. No cut spends a failure, and only a lease that really ran
// out is lost.
type cutAllowance struct {
	failures int  // by its handler
	losses   int  // of leases, whatever is cut
	swallow  int  // and as many more when a read was swallowed: nobody knows of the message until the deadline
	dead     bool // it is to be a dead letter
	overlap  bool // its lease is not renewed, so that two handlers may run
}

func cutPoints() []cutPoint {
	return slices.Concat(
		cutPublishPoints(), cutStartPoints(), cutReadPoints(), cutSettlePoints(), cutLeasePoints(), cutSweepPoints(), cutLoopPoints(),
		cutStopPoints(), cutDeadPoints(), cutOperatorPoints(), cutForgetPoints(), cutLookPoints(),
	)
}

// P1, P2, P3, P5, P9: each script and each command in the life of a message is cut: before it reaches the server, after that and before
// its reply, in the middle of the reply, right after it, and with the reply swallowed by a connection that stays open. When that
// is over no message is lost or in two places, no budget is spent that should not be, everything drains, the client is healthy,
// and nothing of it is left behind. What comes of each cut is what the page says.
func TestCutEverywhere(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: cutting every command takes a minute, and -short was asked for")
	}
	t.Parallel()
	scripts := cutScripts(t)
	points := cutPoints()
	cutCoversScripts(t, points, scripts)
	page := readCutPage(t)

	var mu sync.Mutex
	seen := cutResults{}
	slots := make(chan struct{}, cutsAtOnce)
	var wg sync.WaitGroup
	for _, kind := range cutKinds {
		for i := range points {
			p := &points[i]
			slots <- struct{}{}
			// Not by t.Parallel, which allows no more at once than there are processors.
			wg.Go(func() {
				defer func() { <-slots }()
				t.Run(p.name+"/"+kind.name, func(t *testing.T) {
					got := newCutRun(t, p, kind, scripts).check()
					mu.Lock()
					defer mu.Unlock()
					seen.note(p.name, kind.name, got)
					if want := page.results[p.name][kind.name]; got != want && !*updateCuts {
						t.Errorf("what came of it: %q; %s says %q", got, cutPageName, want)
					}
				})
			})
		}
	}
	wg.Wait()
	if seen.len() == len(points)*len(cutKinds) {
		page.compare(t, points, seen)
	}
}

// cutScripts reads the digest of each script, and its source, from the generated file.
func cutScripts(t *testing.T) map[string]cutSource {
	t.Helper()
	text, err := os.ReadFile("lua_gen.go")
	if err != nil {
		t.Fatal(err)
	}
	scripts := map[string]cutSource{}
	for _, m := range regexp.MustCompile("const ([a-z]+)Source = `([^`]*)`").FindAllStringSubmatch(string(text), -1) {
		sha := regexp.MustCompile(`const ` + m[1] + `SHA = "([0-9a-f]{40})"`).FindStringSubmatch(string(text))
		if sha == nil {
			t.Fatalf("no digest of %s in lua_gen.go", m[1])
		}
		scripts[m[1]] = cutSource{sha[1], m[2]}
	}
	return scripts
}

type cutSource struct{ sha, text string }

// cutCoversScripts fails the test when a script is cut nowhere.
func cutCoversScripts(t *testing.T, points []cutPoint, scripts map[string]cutSource) {
	t.Helper()
	files, err := filepath.Glob("lua/*.lua")
	if err != nil || len(files) == 0 || len(files) != len(scripts) {
		t.Fatalf("%d scripts, %d of them generated: %v", len(files), len(scripts), err)
	}
	for _, file := range files {
		name := fmt.Sprintf("`%s`", filepath.Base(file))
		if !slices.ContainsFunc(points, func(p cutPoint) bool { return p.request.name == name }) {
			t.Errorf("%s is cut nowhere", strings.Trim(name, "`"))
		}
	}
}
