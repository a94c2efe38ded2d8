package cli

import (
	"strings"
	"testing"
)

func TestNormalizeKeepsWhatErrorsHaveInCommon(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                "",
		"connection refused":              "connection refused",
		"\x1b[1;31merror\x1b[0m in job 7": "error in job <n>",
		"  \n first line\nsecond line":    "first line",
		"order 1234 not found":            "order <n> not found",
		"took 1.5s, at most 300ms":        "took <duration>, at most <duration>",
		"after 1h2m3.5s":                  "after <duration>",
		"dial tcp 10.0.0.7:6379: connect: connection refused":                     "dial tcp <addr>: connect: connection refused",
		"dial tcp [fe80::1%eth0]:443: i/o timeout":                                "dial tcp <addr>: i/o timeout",
		"ping fe80::1 (10.0.0.7): 0 answers":                                      "ping <addr> (<addr>): <n> answers",
		"lookup redis-0.redis:6379":                                               "lookup redis-<n>.redis:<n>",
		"user 123e4567-e89b-12d3-a456-426614174000 is gone":                       "user <uuid> is gone",
		"pointer 0xc000123abc":                                                    "pointer <hex>",
		"commit 9fceb02d0ae598e95dc970b74767f19372d61af8":                         "commit <hex>",
		"deadbeef and facade are words":                                           "deadbeef and facade are words",
		"order_42 of user7":                                                       "order_<n> of user<n>",
		"token x9k2m1 expired":                                                    "token <id> expired",
		"message 1735689600000-0 of d1735689600000-5f1c":                          "message <id> of <id>",
		"at 2026-01-02T15:04:05.123Z":                                             "at <time>",
		"at 2026-01-02 15:04:05":                                                  "at <time> <time>",
		"mail to bob@example.com bounced":                                         "mail to <email> bounced",
		`field "name" of 'x y' and ` + "`z`":                                      "field <string> of <string> and <string>",
		"can't reach user's host, won't retry":                                    "can't reach user's host, won't retry",
		"unexpected status 503 from shard 12":                                     "unexpected status 503 from shard <n>",
		"status code: 404":                                                        "status code: 404",
		"http status=429 after 3 tries":                                           "http status=429 after <n> tries",
		`duplicate key "orders_pkey" (SQLSTATE 23505)`:                            "duplicate key <string> (SQLSTATE 23505)",
		"exit status 3":                                                           "exit status 3",
		"status 1234567":                                                          "status <n>",
		"version 1.2.3 uses utf8 and sha256, 99.5% of it":                         "version <n> uses utf<n> and sha<n>, <n>% of it",
		"bad \xff byte 7":                                                         "bad \uFFFD byte <n>",
		"tabs\tand   spaces":                                                      "tabs and spaces",
		"GET https://api.example.com/v1/users/42/orders?page=2: EOF":              "GET https://api.example.com/v<n>/users/<n>/orders?page=<n>: EOF",
		"ulid 01ARZ3NDEKTSV4RRFFQ69G5FAV":                                         "ulid <id>",
		"json: cannot unmarshal string into Go struct field Order.id of type int": "json: cannot unmarshal string into Go struct field Order.id of type int",
	} {
		if got := normalize(text); got != want {
			t.Errorf("normalize(%q)\n got %q\nwant %q", text, got, want)
		}
	}
}

func TestNormalizeBoundsWhatItReadsAndKeeps(t *testing.T) {
	t.Parallel()
	got := normalize(strings.Repeat("é9 ", 1<<20))
	if len(got) > lineKept+len("…") || !strings.HasSuffix(got, "…") {
		t.Errorf("%d bytes are left: %q", len(got), got)
	}
}

func FuzzNormalize(f *testing.F) {
	f.Add("order 12 of \"x\" at 10.0.0.1:80")
	f.Add("'\\")
	f.Fuzz(func(t *testing.T, text string) {
		got := normalize(text)
		if len(got) > lineKept+len("…") || strings.ContainsAny(got, "\r\n") {
			t.Errorf("normalize(%q) = %q", text, got)
		}
	})
}
