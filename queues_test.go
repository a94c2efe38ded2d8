package xstreamq_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// Queues are found by their keys, without a group too, and nothing else is taken for one.
func TestQueues(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	redis := redistest.Dial(t, server.URL())
	do := func(words ...string) {
		t.Helper()
		if err := redis.Do(t.Context(), redis.B().Arbitrary(words...).Build()).Error(); err != nil {
			t.Fatal(err)
		}
	}
	do("XADD", "p:{alone}", "*", "body", "x")
	do("ZADD", "p:{later}.delayed", "1", "d1-a")
	do("XGROUP", "CREATE", "p:{read}", "g", "0", "MKSTREAM")
	for _, foreign := range []string{"p:{read}.g.retry", "p:{gone}.g.dlq", "{other}", "q:{other}", "p:{a b}", "p:{open", "p:{}", "xp:{other}"} {
		do("XADD", foreign, "*", "body", "x")
	}
	do("ZADD", "p:{gone}.g.delayed", "1", "x")
	do("SET", "p:{text}", "x")
	do("SET", "p:{text}.delayed", "x")
	for i := range 3000 { // more than a page
		do("SET", fmt.Sprintf("key:%d", i), "x")
	}
	client, err := xstreamq.Open(server.URL(), xstreamq.Config{KeyPrefix: "p:"})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	got, err := client.Queues(t.Context())
	if diff := cmp.Diff([]string{"alone", "later", "read"}, got); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
}
