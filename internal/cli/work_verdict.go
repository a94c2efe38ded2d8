package cli

import (
	"context"
	"errors"

	"github.com/xstreamq/xstreamq"
)

// Exit codes of a command that say more than success or failure: EX_DATAERR and EX_TEMPFAIL of sysexits.h.
const (
	codeDead    = 65
	codeRelease = 75
)

// verdict is what a run of the command says of its message.
type verdict uint8

const (
	handled verdict = iota
	failed
	rejected  // dead at once
	givenBack // spends nothing
)

// verdictOf judges how a command ended. stopping says that this worker is being stopped: whoever stops it may have asked its
// commands to end as well, as systemd does, and that is no failure of theirs.
func verdictOf(e exit, stopping func() bool) verdict {
	switch code := e.state.ExitCode(); {
	case code == 0:
		return handled
	case code == codeDead:
		return rejected
	case code == codeRelease:
		return givenBack
	case told(e.state) && stopping():
		return givenBack
	}
	return failed
}

// errorFor is what the handler returns.
func (v verdict) errorFor(why error) error {
	switch v {
	case handled:
		return nil
	case rejected:
		return xstreamq.DeadLetter(why)
	case givenBack:
		return xstreamq.Release(why)
	case failed:
	}
	return why
}

// fate is what is asked of Redis for a message. It is no outcome: that it was done is known when it is written.
type fate string

const (
	fateAck     fate = "ack"
	fateRetry   fate = "retry"
	fateDead    fate = "dead"
	fateRelease fate = "release"
	fateLost    fate = "lost" // nothing is: another worker has the message
)

// fate is what is to become of the message. cause is why the handler's context ended, or nil; last says that a failure uses up the
// budget.
func (v verdict) fate(cause error, last bool) fate {
	overran := errors.Is(cause, xstreamq.ErrHandlerTimeout) || errors.Is(cause, xstreamq.ErrMaxExtension)
	switch {
	case v == handled && !overran:
		return fateAck
	case errors.Is(cause, xstreamq.ErrLeaseLost):
		return fateLost
	case v == rejected:
		return fateDead
	case errors.Is(cause, xstreamq.ErrDraining), v == givenBack && !overran:
		return fateRelease
	case last:
		return fateDead
	}
	return fateRetry
}

// endedEarly is why a handler's context has ended, or nil.
func endedEarly(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return context.Cause(ctx)
}
