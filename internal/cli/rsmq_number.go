package cli

import (
	"time"

	"github.com/xstreamq/xstreamq/internal/jsnumber"
	"github.com/xstreamq/xstreamq/rsmq"
)

// rsmqSeconds is a flag for a time in seconds, which is nil when it is not given.
type rsmqSeconds struct{ d *time.Duration }

func (s *rsmqSeconds) String() string { return "" }

// Type is what help shows for the value.
func (s *rsmqSeconds) Type() string { return "seconds" }

// Set reads it from the command line.
func (s *rsmqSeconds) Set(text string) error {
	n, _ := rsmqNumber(text)
	s.d = ofRSMQSeconds(n)
	return nil
}

// rsmqSize is a flag for a number of UTF-16 code units, which is nil when it is not given.
type rsmqSize struct{ n *int }

func (s *rsmqSize) String() string { return "" }

// Type is what help shows for the value.
func (s *rsmqSize) Type() string { return "units" }

// Set reads it from the command line.
func (s *rsmqSize) Set(text string) error {
	n, _ := rsmqNumber(text)
	s.n = ofRSMQSize(n)
	return nil
}

// farOut is out of every range.
const farOut = 1 << 30

// rsmqNumber reads a number as the Node package does. One that is none is far out of range, so that the client refuses it in its turn.
func rsmqNumber(text string) (n int64, ok bool) {
	if n, ok = jsnumber.Parse(text); !ok {
		return -farOut, false
	}
	return max(-farOut, min(n, farOut)), true
}

func ofRSMQSeconds(n int64) *time.Duration { return rsmq.Duration(time.Duration(n) * time.Second) }
func ofRSMQSize(n int64) *int              { return rsmq.Size(int(n)) }
