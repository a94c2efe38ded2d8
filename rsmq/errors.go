package rsmq

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"

	"github.com/redis/rueidis"
)

// Error is an error of RSMQ, with the name and the message that the Node package gives it. As JSON it is {"name":...,"message":...}.
type Error struct {
	Name    string `json:"name"`
	Message string `json:"message"`
}

func (e *Error) Error() string { return "rsmq: " + e.Name + ": " + e.Message }

// Is makes errors of one name match, whatever their message: errors.Is(err, rsmq.ErrInvalidValue).
func (e *Error) Is(target error) bool {
	other, ok := target.(*Error)
	return ok && other.Name == e.Name
}

// What errors.Is finds in the errors of this package. The messages of some say more.
var (
	// ErrMissingParameter: a queue name or message id is empty.
	ErrMissingParameter = &Error{"missingParameter", "No qname supplied"}
	// ErrInvalidFormat: a queue name is not 1-160 of A-Z a-z 0-9 _ -, or an id not 32 of A-Z a-z 0-9 and colon.
	ErrInvalidFormat = &Error{"invalidFormat", "Invalid qname format"}
	// ErrInvalidValue: a time is not between 0 and 9,999,999 seconds, or a size not between 1,024 and 65,536 or -1.
	ErrInvalidValue = &Error{"invalidValue", "vt must be between 0 and 9999999"}
	// ErrMessageNotString: the body is not valid UTF-8. Send bytes as base64 or the like.
	ErrMessageNotString = &Error{"messageNotString", "Message must be a string"}
	// ErrMessageTooLong: the body has more UTF-16 code units than the queue takes.
	ErrMessageTooLong = &Error{"messageTooLong", "Message too long"}
	// ErrQueueNotFound: there is no such queue, or it lost an attribute.
	ErrQueueNotFound = &Error{"queueNotFound", "Queue not found"}
	// ErrQueueExists: there is one already.
	ErrQueueExists = &Error{"queueExists", "Queue exists"}
	// ErrNoAttributeSupplied: SetQueueAttributes was given nothing to set.
	ErrNoAttributeSupplied = &Error{"noAttributeSupplied", "No attribute was supplied"}
)

// ErrUncertain: the operation was sent and its answer never came, so it may have been carried out. An error of this package without it
// says that it was not.
var ErrUncertain = errors.New("rsmq: outcome unknown")

// ErrClosed: Close was called.
var ErrClosed = errors.New("client closed")

// ErrReserved: a queue named QUEUES would keep its messages in the key that lists all queues.
var ErrReserved = fmt.Errorf("%w: the name %s is reserved", ErrInvalidFormat, reserved)

func invalidValue(what, bounds string) error {
	return &Error{ErrInvalidValue.Name, what + " must be between " + bounds}
}

// failed wraps the error of a command that may have changed something. queue is empty for one that is of no queue.
func failed(op, queue string, err error, changes bool) error {
	if err == nil {
		return nil
	}
	if queue != "" {
		op += " " + strconv.Quote(queue)
	}
	_, answered := rueidis.IsRedisErr(err)
	if !changes || answered || notSent(err) {
		return fmt.Errorf("rsmq: %s: %w", op, err)
	}
	return fmt.Errorf("%w: %s: %w", ErrUncertain, op, err)
}

// notSent reports an error that comes before anything reached the server.
func notSent(err error) bool {
	var unsent *unsentError
	var op *net.OpError
	return errors.As(err, &unsent) || errors.Is(err, rueidis.ErrNoSlot) || errors.As(err, &op) && op.Op == "dial"
}

// lasting reports an error that waiting does not cure: one of this package, or an answer of Redis that is not about a state of the server.
func lasting(err error) bool {
	var ours *Error
	if errors.As(err, &ours) || errors.Is(err, ErrClosed) {
		return true
	}
	switch redisCode(err) {
	case "", "LOADING", "BUSY", "READONLY", "MASTERDOWN", "MISCONF", "NOREPLICAS", "OOM", "CLUSTERDOWN", "TRYAGAIN", "UNBLOCKED":
		return false
	}
	return true
}

// wrapped is what Redis 6.2 puts before that which a command in a script answered.
var wrapped = regexp.MustCompile(`^Error running script .*@user_script: ?\d+: -?`)

// redisCode is the first word of a Redis error. ERR stands for those that have no code of their own.
func redisCode(err error) string {
	var re *rueidis.RedisError // IsRedisErr does not look into an error that was wrapped
	if !errors.As(err, &re) || re.IsNil() {
		return ""
	}
	text := wrapped.ReplaceAllString(re.Error(), "")
	code, _, _ := strings.Cut(text, " ")
	if code != strings.ToUpper(code) {
		return "ERR" // rueidis takes it off
	}
	return code
}
