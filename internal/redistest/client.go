package redistest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
)

const (
	maxPrefixName  = 40 // characters of the test's name in a prefix, whose limit is 64
	cleanupTimeout = 30 * time.Second
	scanCount      = 1000
)

// Prefix returns a key prefix that no other test uses, at most 64 characters of A-Z a-z 0-9 _ . - ending in a colon,
// and at the end of the test removes all keys under it from the shared server. Take it before you start what writes
// the keys: clean-ups run in reverse order.
func Prefix(tb testing.TB) string {
	tb.Helper()
	url := URL(tb)
	prefix := prefixName(tb.Name()) + "-" + rand.Text()[:10] + ":"
	tb.Cleanup(func() {
		if err := removeKeys(url, prefix); err != nil {
			tb.Errorf("redistest: remove the keys under %s: %v", prefix, err)
		}
	})
	return prefix
}

// prefixName keeps of a test's name what a key prefix may hold; nothing of that means anything in a glob pattern.
func prefixName(test string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z', r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_', r == '.', r == '-':
			return r
		default:
			return '_'
		}
	}, test)
	return name[:min(len(name), maxPrefixName)]
}

// removeKeys deletes page by page, on every node, so that it serves a cluster too.
func removeKeys(url, prefix string) error {
	client, err := Open(url)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
	defer cancel()
	for _, node := range client.Nodes() {
		for cursor, done := uint64(0), false; !done; {
			scan := node.B().Scan().Cursor(cursor).Match(prefix + "*").Count(scanCount).Build()
			page, err := node.Do(ctx, scan).AsScanEntry()
			if err != nil {
				return fmt.Errorf("SCAN: %w", err)
			}
			if err := unlink(ctx, client, page.Elements); err != nil {
				return err
			}
			cursor, done = page.Cursor, page.Cursor == 0
		}
	}
	return nil
}

func unlink(ctx context.Context, client rueidis.Client, keys []string) error {
	commands := make(rueidis.Commands, 0, len(keys))
	for _, key := range keys {
		commands = append(commands, client.B().Unlink().Key(key).Build())
	}
	for _, result := range client.DoMulti(ctx, commands...) {
		if err := result.Error(); err != nil {
			return fmt.Errorf("UNLINK: %w", err)
		}
	}
	return nil
}

// Client returns a plain client of the shared server, closed at the end of the test.
func Client(tb testing.TB) rueidis.Client {
	tb.Helper()
	return Dial(tb, URL(tb))
}

// Dial returns a plain client of the server at url, closed at the end of the test.
func Dial(tb testing.TB, url string) rueidis.Client {
	tb.Helper()
	client, err := Open(url)
	if err != nil {
		tb.Fatalf("redistest: %v", err)
	}
	tb.Cleanup(client.Close)
	return client
}

// Major is the first part of a server's version. Valkey says that of the Redis whose place it takes.
func Major(tb testing.TB, client rueidis.Client) int {
	tb.Helper()
	about, err := client.Do(context.Background(), client.B().Info().Section("server").Build()).ToString()
	if err != nil {
		tb.Fatalf("redistest: INFO: %v", err)
	}
	_, version, _ := strings.Cut(about, "redis_version:")
	major, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(major)
	if err != nil {
		tb.Fatalf("redistest: the server says its version is %.20q", version)
	}
	return n
}

// Open is Dial without a test: the caller has to close the client. Client-side caching is off.
func Open(url string) (rueidis.Client, error) {
	option, err := rueidis.ParseURL(url)
	if err != nil {
		// The error would quote the URL, and with it a password.
		return nil, errors.New("not a Redis URL; the form is redis://[user:password@]host:port[/db]")
	}
	option.DisableCache = true
	client, err := rueidis.NewClient(option)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", strings.Join(option.InitAddress, ", "), err)
	}
	return client, nil
}
