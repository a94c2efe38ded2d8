package cli

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// The command normal replaces in stdout and stderr, in this order:
//
//	the pairs of REGEXP REPLACEMENT that it is given ($1 is what a group matched)
//	stream ids and ids of delayed messages   ID1, ID2, ... in the order in which they first appear, in stdout and then in stderr
//	times as 2006-01-02T15:04:05.678Z        TIME
//	consumer names of workers                CONSUMER1, CONSUMER2, ...
//	127.0.0.1:PORT                           127.0.0.1:PORT, with that word
//	durations as 350ms, 12s, 1m3s, 2h0m      AGE
//	JSON numbers whose names end in _ms      N
//	two and more spaces                      two: columns are as wide as what they held
var (
	idPattern       = regexp.MustCompile(`\bd?\d{13}-\d+(-[0-9a-zA-Z]+)?\b`)
	timePattern     = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?`)
	consumerPattern = regexp.MustCompile(`[A-Za-z0-9_.:@-]+~\d+`)
	portPattern     = regexp.MustCompile(`127\.0\.0\.1:\d+`)
	agePattern      = regexp.MustCompile(`\b(\d+d\d+h|\d+h\d+m|\d+m\d+s|\d+(\.\d+)?(ms|s|µs))\b`)
	millisPattern   = regexp.MustCompile(`("[a-z_]*_ms"):-?\d+`)
	spacesPattern   = regexp.MustCompile(`  +`)
)

func scriptNormal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args)%2 != 0 {
		ts.Fatalf("usage: normal [REGEXP REPLACEMENT]...")
	}
	n := normalizer{seen: map[string]string{}, count: map[string]int{}}
	for i := 0; i < len(args); i += 2 {
		pattern, err := regexp.Compile(`(?m)` + args[i])
		ts.Check(err)
		n.own = append(n.own, replacement{pattern, args[i+1]})
	}
	out, errOut := n.normal(ts.ReadFile("stdout")), n.normal(ts.ReadFile("stderr"))
	fmt.Fprint(ts.Stdout(), out)
	fmt.Fprint(ts.Stderr(), errOut)
}

type replacement struct {
	pattern *regexp.Regexp
	by      string
}

// normalizer gives equal things equal names.
type normalizer struct {
	own   []replacement
	seen  map[string]string
	count map[string]int
}

func (n *normalizer) normal(text string) string {
	for _, r := range n.own {
		text = r.pattern.ReplaceAllString(text, r.by)
	}
	text = idPattern.ReplaceAllStringFunc(text, func(id string) string { return n.name("ID", id) })
	text = timePattern.ReplaceAllString(text, "TIME")
	text = consumerPattern.ReplaceAllStringFunc(text, func(c string) string { return n.name("CONSUMER", c) })
	text = portPattern.ReplaceAllString(text, "127.0.0.1:PORT")
	text = agePattern.ReplaceAllString(text, "AGE")
	text = millisPattern.ReplaceAllString(text, "$1:N")
	return strings.ReplaceAll(spacesPattern.ReplaceAllString(text, "  "), "\r\n", "\n")
}

func (n *normalizer) name(kind, thing string) string {
	if n.seen[thing] == "" {
		n.count[kind]++
		n.seen[thing] = fmt.Sprintf("%s%d", kind, n.count[kind])
	}
	return n.seen[thing]
}
