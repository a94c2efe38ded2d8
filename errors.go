package xstreamq

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/rediserr"
)

// States that errors.Is finds in what this package returns.
var (
	// ErrInvalidName: a queue, group or consumer name, or KeyPrefix, holds something that may not go into a key.
	ErrInvalidName = errors.New("xstreamq: invalid name")
	// ErrInvalidConfig: Config or SubscribeOptions hold values that cannot work; the error lists all of them.
	ErrInvalidConfig = errors.New("xstreamq: invalid configuration")
	// ErrInvalidMessage: the body cannot be encoded or decoded, or its Validate refuses it; or an id has not the form of one.
	ErrInvalidMessage = errors.New("xstreamq: invalid message")
	// ErrTooLarge: the message is larger than Config.MaxBodySize or has too many headers. It was not stored.
	ErrTooLarge = errors.New("xstreamq: message too large")
	// ErrPublishUncertain: the command was sent and its outcome is unknown, so the message may have been stored. An error
	// of Publish without it says that the message surely was not.
	ErrPublishUncertain = errors.New("xstreamq: publish outcome unknown")
	// ErrAlreadySubscribed: this client already has a subscription of that group on that queue.
	ErrAlreadySubscribed = errors.New("xstreamq: already subscribed")
	// ErrStarted: Start was called before.
	ErrStarted = errors.New("xstreamq: already started")
	// ErrStopped: the client has been stopped or closed, or is being stopped.
	ErrStopped = errors.New("xstreamq: stopped")
	// ErrNoQueue: nothing is known of a queue of that name, not even a delayed message.
	ErrNoQueue = errors.New("xstreamq: no such queue")
	// ErrNoGroup: the queue has no group of that name, now or in the registry, and there is nothing left of one.
	ErrNoGroup = errors.New("xstreamq: no such group")
	// ErrNoMessage: there is no message of that id where it was looked for, or none any more.
	ErrNoMessage = errors.New("xstreamq: no such message")
)

// Causes (context.Cause) of a handler's context that ends early.
var (
	// ErrLeaseLost: another worker has the message now, so only a success of this handler still counts.
	ErrLeaseLost = errors.New("xstreamq: lease lost")
	// ErrHandlerTimeout: the handler ran longer than HandlerTimeout.
	ErrHandlerTimeout = errors.New("xstreamq: handler timeout")
	// ErrMaxExtension: the handler ran longer than MaxExtension; its lease is not renewed any more.
	ErrMaxExtension = errors.New("xstreamq: lease extended for as long as MaxExtension allows")
	// ErrDraining: Stop reached its deadline while the handler ran.
	ErrDraining = errors.New("xstreamq: drain deadline passed")
)

// DrainError is what Stop, Run and Unsubscribe return when handlers had not returned by the deadline. Their messages
// are handed to another worker when their lease runs out, and no budget is spent.
type DrainError struct {
	Handlers int   // how many were left behind
	Err      error // what else went wrong meanwhile, or nil
}

func (e *DrainError) Error() string {
	s := fmt.Sprintf("xstreamq: handlers still running at the drain deadline: %d", e.Handlers)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *DrainError) Unwrap() error { return e.Err }

// verdict errors: what a handler may return besides nil and a plain error.
type retryAfterError struct {
	delay time.Duration
	err   error
}

type deadLetterError struct{ err error }

type discardError struct{ err error }

type releaseError struct{ err error }

// RetryAfter makes the delivery a failure that waits d instead of its backoff. Zero or less retries at once.
func RetryAfter(d time.Duration, err error) error { return &retryAfterError{max(d, 0), err} }

// DeadLetter makes the message a dead letter now, with reason "rejected", however many retries are left.
func DeadLetter(err error) error { return &deadLetterError{err} }

// Discard ends the message as if it had been handled. err is for logs and the Observer.
func Discard(err error) error { return &discardError{err} }

// Release gives the message back after Backoff.Initial. It is no failure and spends no budget.
func Release(err error) error { return &releaseError{err} }

func (e *retryAfterError) Error() string {
	return fmt.Sprintf("retry after %s: %s", e.delay, text(e.err))
}
func (e *deadLetterError) Error() string { return text(e.err) }
func (e *discardError) Error() string    { return "discarded: " + text(e.err) }
func (e *releaseError) Error() string    { return "released: " + text(e.err) }

func (e *retryAfterError) Unwrap() error { return e.err }
func (e *deadLetterError) Unwrap() error { return e.err }
func (e *discardError) Unwrap() error    { return e.err }
func (e *releaseError) Unwrap() error    { return e.err }

func text(err error) string {
	if err == nil {
		return "no error given"
	}
	return err.Error()
}

// redisCode is the first word of a Redis error, which is stable across versions; the rest of the text is not. ERR stands for
// those that have no code of their own.
func redisCode(err error) string { return rediserr.Code(err) }

// groupGone reports that the stream or its consumer group does not exist any more.
func groupGone(err error) bool {
	switch redisCode(err) {
	case "NOGROUP":
		return true
	case "UNBLOCKED":
		return strings.Contains(err.Error(), "no longer exists")
	case "ERR":
		return strings.Contains(err.Error(), "no such key")
	}
	return false
}

// permanent reports an error that no waiting will cure: wrong type, missing permission, wrong password.
func permanent(err error) bool {
	switch redisCode(err) {
	case "WRONGTYPE", "NOPERM", "NOAUTH", "WRONGPASS", "XQTYPE":
		return true
	}
	return false
}

// notSent reports an error that comes before anything reached the server.
func notSent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// publishError wraps what a publish command returned, saying whether the message may have been stored. sent is false when the
// context had ended before the command was sent.
func publishError(queue string, err error, sent bool) error {
	if _, refused := rueidis.IsRedisErr(err); refused || !sent || notSent(err) {
		return fmt.Errorf("xstreamq: publish to %q: %w", queue, err)
	}
	return fmt.Errorf("%w: %q: %w", ErrPublishUncertain, queue, err)
}
