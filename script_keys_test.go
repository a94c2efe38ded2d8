package xstreamq

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// declaredKeys are the keys that the header of a script names, in the order of KEYS.
func declaredKeys(t *testing.T, file string, k keys.Set) []string {
	t.Helper()
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, m := range regexp.MustCompile(`(?m)^-- KEYS \d+ (\w+)`).FindAllSubmatch(source, -1) {
		found = append(found, reflect.ValueOf(k).FieldByName(string(m[1])).String())
	}
	return found
}

// Every key that a script touches is in KEYS, all of one slot: it runs as a user who may touch no other key.
func TestScriptKeysAreDeclared(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	s := scriptServer{redis: redistest.Dial(t, server.URL()), prefix: "p:"}

	const onRetry = "on the retry stream"
	// All branches of a script that touch a key.
	calls := map[string][]scriptCase{
		"ack":     {{name: onRetry, before: heldAgain, call: ack(ackArgs{Group: "g-retry", Ours: true, Keep: 1000, IDs: []string{"5-0", "1-0"}})}},
		"cancel":  {{before: delayedOne("5", "1"), call: cancel("d5-ff")}},
		"compact": {{before: held, call: compact(compactArgs{Retain: 1, Groups: []string{"g"}})}},
		"create":  {{call: create("g", "0-0")}},
		"extend":  {{before: held, call: extend(modeStarted, "1-0")}},
		"fail": {
			{before: held, call: failing(nil)},
			{before: held, call: failing(func(a *failArgs) { a.Budget = 0 })},
			{name: onRetry, before: heldAgain, call: fail(failArgs{Group: "g-retry", Consumer: "c", ID: "5-0", Ours: true, Spend: 1})},
		},
		"forget":   {{before: wholeGroup, call: forget(true)}, {before: wholeGroup, call: forget(false)}},
		"promote":  {{before: delayedOne("5", "1") + failedOne("4", "8"), call: promote(100, 1)}},
		"publish":  {{call: publish("at", "7", "01", "4:body1:a")}},
		"reap":     {{before: held + "\nXACK @queue g 1-0", call: reap("c")}},
		"register": {{call: register("q/g", `{"queue":"q"`)}},
		"release":  {{before: held, call: releaseIDs(1, "1-0")}},
		"reclaim": {
			{before: expired, call: sweep(nil)},
			{before: expired + "SET @lock 1", call: sweep(func(a *reclaimArgs) { a.Budget, a.Cap = 0, 1 })},
			{name: onRetry, before: expiredAgain, call: sweepRetry(nil)},
		},
	}

	calls["survey"] = []scriptCase{{before: wholeGroup, call: survey}, {call: survey}}

	calls["depth"] = []scriptCase{{before: held, call: depthOf("g")}}
	calls["depthof"] = []scriptCase{{before: held, call: depthSeen(depthofArgs{Delivered: "1-0", Pending: 1, Lag: -1})}}
	calls["count"] = []scriptCase{{before: held, call: count("1-0", "1-0", 1)}}
	calls["redrive"] = []scriptCase{{before: deadOne, call: redriving("9-0")}, {before: deadOne, call: publishingAnew("9-0")}}
	calls["find"] = []scriptCase{{before: onTheWay, call: finding("11-0")}}

	files, err := filepath.Glob("lua/*.lua")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts found", err)
	}
	number := 0
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".lua")
		if len(calls[name]) == 0 {
			t.Errorf("no call for %s", file)
		}
		for _, c := range calls[name] {
			number++
			t.Run(name, func(t *testing.T) {
				e, v := s.env(t, number)
				v.do(c.before, e.now)
				declared := declaredKeys(t, file, e.keys)
				if c.name == onRetry {
					declared = declaredKeys(t, file, e.onRetry().keys)
				}
				user := "user" + strconv.Itoa(number)
				v.do("ACL SETUSER "+user+" on >pw +@all resetkeys ~"+strings.Join(declared, " ~"), e.now)
				e.redis = redistest.Dial(t, "redis://"+user+":pw@"+server.Addr())

				got := v.reply(c.call(e))
				if strings.Contains(got, "error") || strings.Contains(got, "can't") || strings.Contains(got, "NOPERM") {
					t.Errorf("with %q alone: %s", declared, got)
				}
				// The user is worth its name.
				if err := e.redis.Do(e.ctx, e.redis.B().Get().Key("other").Build()).Error(); err == nil {
					t.Error("the user may touch any key")
				}
			})
		}
	}
}
