package rsmq

import (
	"fmt"
	"testing"

	"github.com/redis/rueidis"
)

// listener hears what is published.
type listener struct {
	redis  rueidis.Client
	heard  chan string
	fences int
}

func listen(t *testing.T, rc rueidis.Client) *listener {
	t.Helper()
	l := &listener{redis: rc, heard: make(chan string, 1000)}
	dedicated, cancel := rc.Dedicate()
	t.Cleanup(cancel)
	dedicated.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: func(m rueidis.PubSubMessage) { l.heard <- m.Channel + " " + m.Message }})
	if err := dedicated.Do(t.Context(), dedicated.B().Psubscribe().Pattern("*").Build()).Error(); err != nil {
		t.Fatal(err)
	}
	return l
}

// since returns what was published since the last call.
func (l *listener) since(t *testing.T) []string {
	t.Helper()
	l.fences++
	fence := fmt.Sprint("fence ", l.fences)
	if err := l.redis.Do(t.Context(), l.redis.B().Publish().Channel("fence").Message(decimal(int64(l.fences))).Build()).Error(); err != nil {
		t.Fatal(err)
	}
	var heard []string
	for m := range l.heard {
		if m == fence {
			break
		}
		heard = append(heard, m)
	}
	return heard
}
