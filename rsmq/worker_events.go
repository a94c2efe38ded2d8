package rsmq

import (
	"log/slog"
)

// WorkerEvents are called by the worker, and hold it up. Each may be nil. New is called by Send, and Error also by what renews: these may come
// while another one runs.
type WorkerEvents struct {
	Ready    func()                      // the queue exists, polling begins
	Data     func(m Message)             // received, before anything else
	New      func(id string)             // sent by Send
	Deleted  func(id string)             // handled or given up, and deleted
	Exceeded func(m Message)             // given up
	Timeout  func(m Message)             // its handler took too long
	Error    func(err error, m *Message) // of a handler, then with its message; or of Redis
	Stopped  func()                      // Run returns; all handlers have
}

// LogEvents returns events that write to a log what they are told: ids and errors, no bodies. Errors are logged as such, time-outs and
// messages that are given up as warnings, all else for debugging.
func LogEvents(log *slog.Logger, queue string) WorkerEvents {
	log = log.With("queue", queue)
	return WorkerEvents{
		Ready:   func() { log.Debug("worker polls") },
		Stopped: func() { log.Debug("worker stopped") },
		Data:    func(m Message) { log.Debug("message received", "id", m.ID, "attempt", m.ReceiveCount) },
		New:     func(id string) { log.Debug("message sent", "id", id) },
		Deleted: func(id string) { log.Debug("message deleted", "id", id) },
		Exceeded: func(m Message) {
			log.Warn("message given up", "id", m.ID, "attempt", m.ReceiveCount)
		},
		Timeout: func(m Message) { log.Warn("handler timed out", "id", m.ID, "attempt", m.ReceiveCount) },
		Error: func(err error, m *Message) {
			if m == nil {
				log.Error("worker failed", "err", err)
				return
			}
			log.Error("message failed", "id", m.ID, "attempt", m.ReceiveCount, "err", err)
		},
	}
}

func (w *Worker) failed(err error, m *Message) {
	if w.opts.Events.Error != nil {
		w.opts.Events.Error(err, m)
	}
}

// tell calls an event that somebody listens to.
func tell(event func()) {
	if event != nil {
		event()
	}
}

func tellOf[T any](event func(T), about T) {
	if event != nil {
		event(about)
	}
}
