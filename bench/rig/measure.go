package rig

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/xstreamq/xstreamq/bench/peer"
	"github.com/xstreamq/xstreamq/bench/report"
)

// pollEvery is how often it is looked whether a phase has ended. Its figures come from the clocks of the children.
const pollEvery = 5 * time.Millisecond

// measurement is one phase under way.
type measurement struct {
	srv   *server
	n     int
	redis time.Duration // CPU of the server before
}

func begin(ctx context.Context, srv *server, n int) (*measurement, error) {
	cpu, err := srv.cpu(ctx)
	return &measurement{srv, n, cpu}, err
}

// end takes the CPU that the phase has cost. Processes that work also have their peak of memory taken.
func (m *measurement) end(ctx context.Context, first, last int64, processes ...*process) (report.Sample, error) {
	s := report.Sample{Messages: m.n}
	if last > first {
		s.Rate = perSecond(m.n, first, last)
	}
	for _, p := range processes {
		used, err := p.since()
		if err != nil {
			return s, err
		}
		s.ClientCPU += m.perMessage(used.cpu)
		if p.role == peer.Worker {
			s.WorkerRSS = max(s.WorkerRSS, used.peakRSS)
		}
	}
	cpu, err := m.srv.cpu(ctx)
	s.RedisCPU = m.perMessage(cpu - m.redis)
	return s, err
}

func (m *measurement) perMessage(cpu time.Duration) float64 {
	return float64(cpu) / float64(time.Microsecond) / float64(m.n)
}

// awaitHandled returns when workers say that they have handled n messages together.
func awaitHandled(ctx context.Context, workers []*process, n int) error {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		var handled int64
		for _, w := range workers {
			handled += w.handled.Load()
			if w.failed.Load() {
				_, err := w.await(ctx, peer.Worked)
				return err
			}
		}
		if handled >= int64(n) {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("%s: %d of %d messages handled: %w", workers[0].name, handled, n, context.Cause(ctx))
		}
	}
}

// awaitEnded waits until the server has nothing that workers took and have not ended, and returns when that was, in ns since 1970.
func (s *server) awaitEnded(ctx context.Context, sys System) (int64, error) {
	commands := sys.left
	if commands == nil {
		commands = sys.stored
	}
	for {
		left, err := s.count(ctx, commands)
		if err != nil || left == 0 {
			return time.Now().UnixNano(), err
		}
		select {
		case <-time.After(pollEvery):
		case <-ctx.Done():
			return 0, fmt.Errorf("%s: %d messages handled but not ended: %w", sys.Name, left, context.Cause(ctx))
		}
	}
}

// tellAll adds up what workers have done, and checks that this is n messages, once each.
func tellAll(ctx context.Context, workers []*process, n int) (peer.Event, error) {
	var total peer.Event
	for _, w := range workers {
		if err := w.tell(peer.Command{Op: peer.Tell}); err != nil {
			return total, err
		}
		e, err := w.await(ctx, peer.Worked)
		if err != nil {
			return total, err
		}
		total.Handled += e.Handled
		total.Sum += e.Sum
		total.Latencies = e.Latencies
		if e.Handled > 0 && (total.First == 0 || e.First < total.First) {
			total.First = e.First
		}
		total.Last = max(total.Last, e.Last)
	}
	return total, checkOnce(total, n)
}

var errCount = errors.New("not every message was handled once")

// checkOnce compares the number and the sum of sequence numbers with those of the messages 0 to n-1.
func checkOnce(total peer.Event, n int) error {
	if want := int64(n) * int64(n-1) / 2; total.Handled != int64(n) || total.Sum != want {
		return fmt.Errorf("%w: %d with the sum %d, of %d with the sum %d", errCount, total.Handled, total.Sum, n, want)
	}
	return nil
}
