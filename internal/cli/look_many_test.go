package cli

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

var askedForGroups = regexp.MustCompile(`cmdstat_xinfo\|groups:calls=(\d+),`)

// Thousands of groups of one queue, each with something pending: the list of them all, which takes Redis milliseconds, is asked for
// now and then, not for every group.
func TestThousandsOfGroupsOnOneQueue(t *testing.T) {
	t.Parallel()
	const groups = 3000
	server := redistest.Start(t, redistest.Options{})
	client := redistest.Dial(t, server.URL())
	const script = `redis.call('XADD', KEYS[1], '*', 'body', 'x')
		local now = redis.call('TIME')[1] .. '000'
		for i = 1, tonumber(ARGV[1]) do
			redis.call('XGROUP', 'CREATE', KEYS[1], 'g' .. i, 0)
			redis.call('XREADGROUP', 'GROUP', 'g' .. i, 'c~600000', 'STREAMS', KEYS[1], '>')
			redis.call('HSET', KEYS[2], 'q/g' .. i, '{"visibility_ms":600000,"last_seen":' .. now .. '}')
		end
		redis.call('XADD', KEYS[1], '*', 'body', 'y')
		return 'OK'`
	fill := client.B().Eval().Script(script).Numkeys(2).Key("{q}", "xstreamq:registry").Arg(strconv.Itoa(groups)).Build()
	if err := client.Do(t.Context(), fill).Error(); err != nil {
		t.Fatal(err)
	}
	asked := func() int {
		stats, err := client.Do(t.Context(), client.B().Info().Section("commandstats").Build()).ToString()
		if err != nil {
			t.Fatal(err)
		}
		found := askedForGroups.FindStringSubmatch(stats)
		if found == nil {
			if strings.Contains(stats, "cmdstat_xinfo:") {
				t.Skip("SKIPPED: this Redis does not count XINFO GROUPS apart from XINFO CONSUMERS")
			}
			return 0
		}
		n, err := strconv.Atoi(found[1])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for name, lines := range map[string]int{"ls": groups, "health": groups + 3, "doctor": 1, "depth": groups} {
		before := asked()
		cmd := command(t, name)
		cmd.Env = append(cmd.Env, "XSTREAMQ_URL="+server.URL())
		var out, errOut bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errOut
		err := cmd.Run()
		if n := strings.Count(out.String(), "\n"); err != nil || n < lines {
			t.Errorf("%s: %v, %d lines, %s", name, err, n, errOut.String())
		}
		if n := asked() - before; n > 10 {
			t.Errorf("%s asked %d times for the groups of the queue", name, n)
		}
		if name == "doctor" {
			said := out.String()
			if strings.Contains(said, "not registered") || !strings.Contains(said, "2000 groups of the registry were not looked at") {
				t.Errorf("doctor says\n%.3000s", said)
			}
		}
	}
}
