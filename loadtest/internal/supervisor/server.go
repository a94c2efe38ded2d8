package supervisor

import (
	"context"
	"sync"
	"time"

	"github.com/xstreamq/xstreamq/internal/redistest"
	"github.com/xstreamq/xstreamq/loadtest/internal/fault"
)

// Server is a Redis server of one's own that can be killed.
type Server struct {
	server *redistest.Server

	mu     sync.Mutex
	events []fault.Event
}

// StartServer starts a server with an append-only file in a directory. fsync is its appendfsync policy; empty means no such file.
func StartServer(dir, fsync string) (*Server, error) {
	server, err := redistest.NewServer(redistest.Options{Dir: dir, AOF: fsync})
	if err != nil {
		return nil, err
	}
	return &Server{server: server}, nil
}

// URL is the server's address.
func (s *Server) URL() string { return s.server.URL() }

// Crash kills the server as a crash would, and starts it again. It returns when it has loaded its data.
func (s *Server) Crash() error {
	from := time.Now()
	s.server.Kill()
	if err := s.server.Restart(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, fault.Event{Kind: fault.Outage, From: from, To: time.Now()})
	return nil
}

// Events returns the outages so far.
func (s *Server) Events() []fault.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]fault.Event(nil), s.events...)
}

// Close ends the server.
func (s *Server) Close() error { return s.server.Close() }

// Every calls f at an interval until ctx ends or f returns an error, which it returns. An interval of 0 or less is never.
func Every(ctx context.Context, interval time.Duration, f func(context.Context) error) error {
	if interval <= 0 {
		return nil
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
		if ctx.Err() != nil {
			return nil
		}
		if err := f(ctx); err != nil {
			return err
		}
	}
}
