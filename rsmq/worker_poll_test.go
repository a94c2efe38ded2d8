package rsmq

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/mock"
)

// scripted is a Redis that answers each receive with the next of its answers, and notes when that was; then it stops the worker.
type scripted struct {
	*mock.Client
	began   time.Time
	answers []string // "" = no message, "!" = an error, else a message's body
	polled  []time.Duration
	stop    func()
}

func (s *scripted) Mode() rueidis.ClientMode { return rueidis.ClientModeStandalone }

func (s *scripted) Do(_ context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	words := cmd.Commands()
	if words[1] == createSHA {
		return mock.Result(mock.RedisInt64(createCreated))
	}
	if words[1] == deleteSHA {
		return mock.Result(mock.RedisArray(mock.RedisInt64(1)))
	}
	if words[1] != receiveSHA {
		return mock.ErrorResult(errors.New("unexpected command " + strings.Join(words, " ")))
	}
	s.polled = append(s.polled, time.Since(s.began))
	answer := s.answers[0]
	if s.answers = s.answers[1:]; len(s.answers) == 0 {
		s.stop()
	}
	switch answer {
	case "":
		return mock.Result(mock.RedisArray(mock.RedisInt64(0), mock.RedisInt64(-1)))
	case "!":
		return mock.ErrorResult(errors.New("connection reset"))
	}
	return mock.Result(mock.RedisArray(mock.RedisInt64(0), mock.RedisInt64(-1), mock.RedisBlobString(someID),
		mock.RedisBlobString(answer), mock.RedisInt64(1), mock.RedisBlobString("1700000000000")))
}

// The waits between polls are those of rsmq-worker: a counter of polls that found nothing picks one of the intervals.
func TestWorkerIntervals(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for name, test := range map[string]struct {
		intervals []time.Duration
		answers   []string
		want      []time.Duration
	}{
		"default, nothing comes":   {nil, []string{"", "", "", "", "", ""}, []time.Duration{0, 0, s, 6 * s, 16 * s, 26 * s}},
		"default, messages come":   {nil, []string{"m", "", "", "", "m", "m", "", ""}, []time.Duration{0, 0, s, 6 * s, 16 * s, 16 * s, 16 * s, 17 * s}},
		"one interval":             {[]time.Duration{2 * s}, []string{"", "m", "m", ""}, []time.Duration{0, 2 * s, 4 * s, 6 * s}},
		"as a number of Node":      {[]time.Duration{0, 2 * s}, []string{"m", "m", "", "", "m", ""}, []time.Duration{0, 0, 0, 2 * s, 4 * s, 4 * s}},
		"errors are waiting steps": {nil, []string{"!", "!", "m", "!", ""}, []time.Duration{0, retryFirst, retryFirst + s, retryFirst + s, retryFirst + 2*s}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				redis := &scripted{Client: mock.NewClient(nil), began: time.Now(), answers: test.answers}
				c, err := New(redis, Config{})
				if err != nil {
					t.Fatal(err)
				}
				failures := 0
				w, err := c.NewWorker("q", func(context.Context, Message) error { return nil }, WorkerOptions{
					Intervals: test.intervals, Events: WorkerEvents{Error: func(error, *Message) { failures++ }},
				})
				if err != nil {
					t.Fatal(err)
				}
				redis.stop = w.Stop
				if err := w.Run(t.Context()); err != nil {
					t.Error(err)
				}
				if diff := cmp.Diff(test.want, redis.polled); diff != "" {
					t.Errorf("polled (-want +got):\n%s", diff)
				}
				if want := strings.Count(strings.Join(test.answers, ""), "!"); failures != want {
					t.Errorf("%d errors were reported, want %d", failures, want)
				}
			})
		})
	}
}

// Intervals can be changed while the worker runs.
func TestWorkerChangesIntervals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		redis := &scripted{Client: mock.NewClient(nil), began: time.Now(), answers: slices.Repeat([]string{""}, 5)}
		c, err := New(redis, Config{})
		if err != nil {
			t.Fatal(err)
		}
		w, err := c.NewWorker("q", func(context.Context, Message) error { return nil }, WorkerOptions{Intervals: []time.Duration{time.Minute}})
		if err != nil {
			t.Fatal(err)
		}
		redis.stop = w.Stop
		time.AfterFunc(90*time.Second, func() {
			if err := w.ChangeIntervals(-1); err == nil {
				t.Error("a negative interval")
			}
			if err := w.ChangeIntervals(time.Second); err != nil {
				t.Error(err)
			}
		})
		if err := w.Run(t.Context()); err != nil {
			t.Error(err)
		}
		want := []time.Duration{0, time.Minute, 2 * time.Minute, 2*time.Minute + time.Second, 2*time.Minute + 2*time.Second}
		if diff := cmp.Diff(want, redis.polled); diff != "" {
			t.Errorf("polled (-want +got):\n%s", diff)
		}
	})
}
