package redistest

import (
	"context"
	"testing"

	"github.com/redis/rueidis"
)

func TestMain(m *testing.M) { Main(m) }

// set and get fail the test when Redis does not take the command.
func set(tb testing.TB, client rueidis.Client, key, value string) {
	tb.Helper()
	if err := client.Do(context.Background(), client.B().Set().Key(key).Value(value).Build()).Error(); err != nil {
		tb.Fatalf("SET %s: %v", key, err)
	}
}

func get(tb testing.TB, client rueidis.Client, key string) string {
	tb.Helper()
	value, err := client.Do(context.Background(), client.B().Get().Key(key).Build()).ToString()
	if err != nil && !rueidis.IsRedisNil(err) {
		tb.Fatalf("GET %s: %v", key, err)
	}
	return value
}
