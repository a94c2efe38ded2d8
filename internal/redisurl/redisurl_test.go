package redisurl_test

import (
	"crypto/tls"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/redisurl"
)

// parsed is what the tests look at of rueidis.ClientOption, which holds functions.
type parsed struct {
	Address              []string
	User, Password, Name string
	DB                   int
	MasterSet            string
	RESP2, Dials         bool
	Timeout              time.Duration
	ServerName           string // of TLS; "-" without
	Unverified           bool
}

func parse(t *testing.T, raw string) parsed {
	t.Helper()
	o, err := redisurl.Parse(raw)
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	p := parsed{
		Address: o.InitAddress, User: o.Username, Password: o.Password, Name: o.ClientName, DB: o.SelectDB,
		MasterSet: o.Sentinel.MasterSet, RESP2: o.AlwaysRESP2, Dials: o.DialCtxFn != nil, Timeout: o.Dialer.Timeout, ServerName: "-",
	}
	if o.TLSConfig != nil {
		if o.TLSConfig.MinVersion < tls.VersionTLS12 {
			t.Errorf("%s: the oldest version of TLS is %x", raw, o.TLSConfig.MinVersion)
		}
		p.ServerName, p.Unverified = o.TLSConfig.ServerName, o.TLSConfig.InsecureSkipVerify
	}
	return p
}

// Every form of URL that the engine and the command line take.
func TestParse(t *testing.T) {
	t.Parallel()
	cases := map[string]parsed{
		"redis://localhost":                            {Address: []string{"localhost:6379"}, ServerName: "-"},
		"redis://u:p@h:1/2":                            {Address: []string{"h:1"}, User: "u", Password: "p", DB: 2, ServerName: "-"},
		"redis://:p%40%2F%23%3F%25@h:1":                {Address: []string{"h:1"}, Password: "p@/#?%", ServerName: "-"},
		"redis://[::1]:6380?protocol=2&client_name=me": {Address: []string{"[::1]:6380"}, RESP2: true, Name: "me", ServerName: "-"},
		"rediss://h?dial_timeout=2s":                   {Address: []string{"h:6379"}, ServerName: "h", Timeout: 2 * time.Second},
		"rediss://h:1?skip_verify":                     {Address: []string{"h:1"}, ServerName: "h", Unverified: true},
		"valkey://h:1":                                 {Address: []string{"h:1"}, ServerName: "-"},
		"unix:///run/redis.sock":                       {Address: []string{"/run/redis.sock"}, Dials: true, ServerName: "-"},
		"unix://u:p@/run/redis.sock?db=3":              {Address: []string{"/run/redis.sock"}, User: "u", Password: "p", DB: 3, Dials: true, ServerName: "-"},
		"redis://:p@s1:26379/1?addr=s2:26379&addr=s3:26380&master_set=main": {
			Address: []string{"s1:26379", "s2:26379", "s3:26380"}, Password: "p", DB: 1, MasterSet: "main", ServerName: "-",
		},
		"redis://n1:7000?addr=n2:7001": {Address: []string{"n1:7000", "n2:7001"}, ServerName: "-"},
	}
	for raw, want := range cases {
		if diff := cmp.Diff(want, parse(t, raw)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", raw, diff)
		}
	}
}

// No error shows any part of the URL, wherever the secret slipped to, and each says what the form is.
func TestErrorsShowNothingOfTheURL(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	for _, raw := range []string{
		"", secret, secret + "://h", ":" + secret + "@h", "http://:" + secret + "@h",
		"redis://:" + secret + "@h/x", "redis://:" + secret + "@h/0/1", "redis://:" + secret + "@h?db=x", "redis://h/" + secret,
		"redis://h?db=" + secret, "redis://h?dial_timeout=" + secret, "redis://h?write_timeout=" + secret, "rediss://h?skip_verify=" + secret,
		"redis://:" + secret + "%zz@h", "redis://:" + secret + " @h", "redis://:" + secret + "\x00@h", "redis://u:" + secret + "[@h",
		"redis://u:x/" + secret + "@h", "redis://u:" + secret + "/x@h", "redis://u:1/" + secret + "@h/0", "redis://u:x?" + secret + "@h",
		"redis://u:x@" + secret + "#x@h", "redis://u:x@" + secret + "?x@h", "redis://u:x@" + secret + "/x@h", "redis://h#" + secret,
		"unix://u:x/" + secret + "@/run/redis.sock", "unix://u:1/" + secret + "@/run/redis.sock", "unix://u:x?" + secret + "@/run/redis.sock",
		"unix://" + secret + "/run/redis.sock", "unix://:" + secret + "@", "unix://", "redis://h:1?addr=" + secret,
	} {
		o, err := redisurl.Parse(raw)
		if err == nil {
			t.Errorf("%q is taken for %v", raw, o.InitAddress)
			continue
		}
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%q: the error shows the secret: %v", raw, err)
		}
		if !strings.Contains(err.Error(), "the form is redis://") && !strings.Contains(err.Error(), "the form is unix://") {
			t.Errorf("%q: the error does not say the form: %v", raw, err)
		}
		if diff := cmp.Diff([]string(nil), o.InitAddress); diff != "" {
			t.Errorf("%q: options beside an error", raw)
		}
	}
}

// What Parse returns is what a rueidis client takes.
func TestOptionsServeRueidis(t *testing.T) {
	t.Parallel()
	o, err := redisurl.Parse("redis://127.0.0.1:1?max_retries=0")
	if err != nil {
		t.Fatal(err)
	}
	if c, err := rueidis.NewClient(o); err == nil {
		c.Close()
		t.Error("nobody listens there")
	} else if !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Error(err)
	}
}
