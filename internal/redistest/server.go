package redistest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	readyTimeout = 30 * time.Second // for a server to load its data and answer
	stopTimeout  = 10 * time.Second // for a server to come to an orderly end before it is killed
	bindAttempts = 20               // starts on ports that somebody else took first
)

var errPortTaken = errors.New("the port is taken")

// process is one run of a server. Its methods do nothing to a server that has ended.
type process interface {
	pid() int // as the server itself sees it
	alive() bool
	kill()
	stop() // an orderly end; after stopTimeout it is a kill
	pause()
	resume()
}

// Options describe a server of one's own. The zero value is a server that keeps nothing on disk.
type Options struct {
	// AOF is the appendfsync policy of an append-only file: "everysec", "always" or "no". Empty: no such file.
	AOF string
	// Args are further arguments of redis-server, as {"--maxmemory", "10mb"}. They win over the ones set here.
	Args []string
	// Dir is where the server works and keeps its data. Empty: a temporary directory, removed by Close.
	Dir string
	// File is a configuration file, read before Args. Redis writes to that of a Sentinel ({"--sentinel"}).
	File string
}

// Server is a Redis server of one's own, on a port of 127.0.0.1 that it keeps over restarts. Its methods may be called
// from several goroutines.
type Server struct {
	tb      testing.TB // nil without a test
	start   func(args []string, dir, logPath string) (process, error)
	file    string
	args    []string
	dir     string
	tempDir bool
	port    int

	mu   sync.Mutex
	proc process // the latest run
}

// Start gives the test a server of its own and closes it at the end of the test. It runs the redis-server or
// valkey-server on PATH, or without one a container on the host's network; never a server that
// XSTREAMQ_TEST_REDIS_URL names, which is not ours to kill.
func Start(tb testing.TB, opts Options) *Server {
	tb.Helper()
	s, err := NewServer(opts)
	if err != nil {
		tb.Fatal(err)
	}
	s.tb = tb
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("the last lines of the server at %s:\n%s", s.Addr(), s.logSince(0))
		}
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// NewServer is Start without a test: the caller has to Close the server.
func NewServer(opts Options) (*Server, error) {
	start, err := findStart()
	if err != nil {
		return nil, err
	}
	s := &Server{start: start, file: opts.File, args: serverArgs(opts), dir: opts.Dir}
	if s.dir == "" {
		if s.dir, err = os.MkdirTemp("", "xstreamq-redis-"); err != nil {
			return nil, fmt.Errorf("redistest: create a directory for the server: %w", err)
		}
		s.tempDir = true
	}
	for range bindAttempts {
		if s.port, err = freePort(); err != nil {
			break
		}
		if err = s.launch(); !errors.Is(err, errPortTaken) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("redistest: %w", err), s.removeDir())
	}
	return s, nil
}

// findStart returns the way to run a server that can be killed and restarted.
func findStart() (func(args []string, dir, logPath string) (process, error), error) {
	binary, err := findBinary()
	if err == nil {
		return func(args []string, dir, logPath string) (process, error) {
			return startLocal(binary, args, dir, logPath)
		}, nil
	}
	if dockerErr := dockerAnswers(); dockerErr != nil {
		return nil, fmt.Errorf("redistest: no Redis to start and kill: install redis-server (scripts/redis.sh) or start "+
			"Docker; %s will not do: %w", urlVariable, errors.Join(err, dockerErr))
	}
	return startContained, nil
}

func serverArgs(opts Options) []string {
	args := []string{"--bind", "127.0.0.1", "--save", ""}
	if opts.AOF == "" {
		args = append(args, "--appendonly", "no")
	} else {
		args = append(args, "--appendonly", "yes", "--appendfsync", opts.AOF)
	}
	return append(args, opts.Args...)
}

// launch runs the binary and waits until it takes commands. The caller holds mu, or is alone.
func (s *Server) launch() error {
	logged := s.logSize()
	args := append([]string{"--port", strconv.Itoa(s.port), "--dir", s.dir}, s.args...)
	if s.file != "" {
		args = append([]string{s.file}, args...) // it has to be the first
	}
	proc, err := s.start(args, s.dir, s.logPath())
	if err != nil {
		return err
	}
	s.proc = proc
	answered := poll(readyTimeout, func() bool {
		if !proc.alive() {
			return true
		}
		pid, ok := ready(s.Addr())
		return ok && (pid == 0 || pid == proc.pid())
	})
	if answered && proc.alive() {
		return nil
	}
	proc.kill()
	output := s.logSince(logged)
	if strings.Contains(output, "Address already in use") {
		return fmt.Errorf("start a server on %s: %w", s.Addr(), errPortTaken)
	}
	return fmt.Errorf("the server on %s did not come up; its last lines:\n%s", s.Addr(), output)
}

// Addr is the server's host:port.
func (s *Server) Addr() string { return loopback(s.port) }

// URL is the server's address as redis://host:port.
func (s *Server) URL() string { return "redis://" + s.Addr() }

// Alive reports whether the server's process exists; a paused one does.
func (s *Server) Alive() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc.alive()
}

// Kill ends the server at once, as a crash would, and returns when it is gone.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.proc.kill()
}

// Stop ends the server in good order (what the append-only file lacks is written) and returns when it is gone.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.proc.stop()
}

// Pause freezes the server (SIGSTOP) and returns when it stands still: connections stay open, nothing is answered.
func (s *Server) Pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.proc.pause()
}

// Resume lets a paused server go on.
func (s *Server) Resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.proc.resume()
}

// Restart starts the server again, on the same port and with the data in its directory, and returns when the data is
// loaded and commands are taken. A server that still runs is stopped first. With a server of [Start] an error has also
// failed the test.
func (s *Server) Restart() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.proc.stop()
	var err error
	poll(readyTimeout, func() bool {
		err = s.launch()
		return !errors.Is(err, errPortTaken)
	})
	if err == nil {
		return nil
	}
	err = fmt.Errorf("redistest: restart: %w", err)
	if s.tb != nil {
		s.tb.Error(err)
	}
	return err
}

// Close kills the server and removes its temporary directory. A second Close does nothing.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.proc.kill()
	return s.removeDir()
}

func (s *Server) removeDir() error {
	if !s.tempDir {
		return nil
	}
	if err := os.RemoveAll(s.dir); err != nil {
		return fmt.Errorf("redistest: remove the server's directory: %w", err)
	}
	return nil
}

func (s *Server) logPath() string { return filepath.Join(s.dir, "server.log") }

func (s *Server) logSize() int64 {
	info, err := os.Stat(s.logPath())
	if err != nil {
		return 0 // not written yet
	}
	return info.Size()
}

// logSince returns what the server printed since the log had that size, at most the last 4 KiB.
func (s *Server) logSince(size int64) string {
	const most = 4 << 10
	content, err := os.ReadFile(s.logPath())
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	content = content[min(size, int64(len(content))):]
	return string(content[max(0, len(content)-most):])
}
