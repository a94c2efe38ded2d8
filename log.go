package xstreamq

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// logEvery is how often the same line may be logged.
const logEvery = 10 * time.Second

// limitedLog lets one line of a kind through per logEvery, and says how many it held back. A kind is its message and scope.
type limitedLog struct {
	to *slog.Logger

	mu   sync.Mutex
	seen map[string]*seenLine
}

type seenLine struct {
	last time.Time
	held int
}

func newLimitedLog(to *slog.Logger) *limitedLog {
	return &limitedLog{to: to, seen: map[string]*seenLine{}}
}

// scopedLog logs for one subscription.
type scopedLog struct {
	limited *limitedLog
	scope   string
	args    []any
}

func (l *limitedLog) scoped(scope string, args ...any) *scopedLog {
	return &scopedLog{limited: l, scope: scope, args: args}
}

func (s *scopedLog) Warn(msg string, args ...any)  { s.log(slog.LevelWarn, msg, args) }
func (s *scopedLog) Error(msg string, args ...any) { s.log(slog.LevelError, msg, args) }

func (s *scopedLog) log(level slog.Level, msg string, args []any) {
	ctx := context.Background()
	if !s.limited.to.Enabled(ctx, level) {
		return
	}
	held, ok := s.limited.pass(s.scope+"\x00"+msg, time.Now())
	if !ok {
		return
	}
	all := append(append([]any(nil), s.args...), args...)
	if held > 0 {
		all = append(all, "held_back", held)
	}
	s.limited.to.Log(ctx, level, msg, all...) //nolint:sloglint // the callers' messages are constants
}

func (l *limitedLog) pass(kind string, now time.Time) (held int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := l.seen[kind]
	if line == nil {
		line = &seenLine{}
		l.seen[kind] = line
	}
	if !line.last.IsZero() && now.Sub(line.last) < logEvery {
		line.held++
		return 0, false
	}
	held, line.held, line.last = line.held, 0, now
	return held, true
}
