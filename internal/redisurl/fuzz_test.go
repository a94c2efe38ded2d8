package redisurl_test

import (
	"strings"
	"testing"

	"github.com/xstreamq/xstreamq/internal/redisurl"
)

// secretMark is part of every password here, and of no error text of ours.
const secretMark = "S3cretZQ"

// No error about a URL shows a password, however it is written and wherever it ends up.
func FuzzParseKeepsSecrets(f *testing.F) {
	f.Add("redis://user:", "", "@host:6379/0")
	f.Add("redis://:", "#/?", "@host")
	f.Add("rediss://u:", "@@", "@h:1/x")
	f.Add("unix://u:", "/", "@/run/redis.sock?db=x")
	f.Add("redis://", "", "")
	f.Add("redis://h:", "", "?addr=s2&dial_timeout=x")
	f.Add("", "%zz", "")
	f.Fuzz(func(t *testing.T, before, secret, after string) {
		raw := before + secretMark + secret + after
		opts, err := redisurl.Parse(raw)
		if err == nil {
			if len(opts.InitAddress) == 0 {
				t.Errorf("%q is taken, and names no server", raw)
			}
			return
		}
		// Also not in another case, as a host would be.
		if strings.Contains(strings.ToLower(err.Error()), strings.ToLower(secretMark)) {
			t.Errorf("the error about %q shows it: %v", raw, err)
		}
	})
}
