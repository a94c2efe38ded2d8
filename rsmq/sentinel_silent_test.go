package rsmq

import (
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

// askedWithin is how long a frozen sentinel may hold up a client: a dial of 5s, and as much again for a busy machine.
const askedWithin = 10 * time.Second

// A sentinel is frozen: a client that listened to it asks the next one when its server says that it is a replica, and Open passes it over.
func TestFrozenSentinel(t *testing.T) {
	t.Parallel()
	primary := redistest.Start(t, redistest.Options{})
	frozen, other := startSentinel(t, primary), startSentinel(t, primary)
	direct := over(t, redistest.Dial(t, primary.URL()), Config{})
	watching := over(t, redistest.Dial(t, other.URL()), Config{})
	asked := func() int {
		info, err := run(t, watching, "INFO", "stats").ToString()
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(regexp.MustCompile(`total_connections_received:(\d+)`).FindStringSubmatch(info)[1])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	create(t, direct, "q", QueueOptions{})
	url := frozen.URL() + "?master_set=main&addr=" + other.Addr()
	c := opened(t, url, Config{})
	send(t, c, "q", "before")
	before := asked()

	frozen.Pause()
	run(t, direct, "REPLICAOF", "127.0.0.1", "1")
	began := time.Now()
	redistest.WaitFor(t, time.Minute, "the other sentinel to be asked", func() bool {
		_, err := c.SendMessage(t.Context(), "q", "to a replica", SendOptions{})
		return err != nil && asked() > before
	})
	late(t, began, "asking the other one")
	run(t, direct, "REPLICAOF", "NO", "ONE")
	redistest.WaitFor(t, time.Minute, "a message taken again", func() bool {
		_, err := c.SendMessage(t.Context(), "q", "after", SendOptions{})
		return err == nil
	})

	began = time.Now()
	done := make(chan error, 1)
	go func() {
		fresh, err := Open(url, Config{})
		if err == nil {
			_, err = fresh.SendMessage(t.Context(), "q", "from a new one", SendOptions{})
			fresh.Close()
		}
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
		late(t, began, "Open")
	case <-time.After(askedWithin):
		t.Error("Open still waits for the frozen sentinel")
	}
}

func late(t *testing.T, began time.Time, what string) {
	t.Helper()
	took := time.Since(began)
	t.Logf("%s took %v", what, took.Round(time.Millisecond))
	if took > askedWithin {
		t.Errorf("%s took %v", what, took)
	}
}
