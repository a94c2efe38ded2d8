package rsmq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/mock"
)

func answered(text string) error { return mock.Result(mock.RedisError(text)).Error() }

// What Redis answered, or what never left, is not in doubt; all else is, if it may have changed something.
func TestUncertain(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err  error
		want bool
	}{
		{answered("WRONGTYPE Operation against a key"), false},
		{answered("READONLY You can't write"), false},
		{&unsentError{context.Canceled}, false},
		{&unsentError{ErrClosed}, false},
		{&net.OpError{Op: "dial", Err: errors.New("connection refused")}, false},
		{fmt.Errorf("cluster: %w", &net.OpError{Op: "dial", Err: errors.New("no route")}), false},
		{rueidis.ErrNoSlot, false},
		{&net.OpError{Op: "read", Err: errors.New("connection reset")}, true},
		{io.EOF, true},
		{context.Canceled, true},
		{context.DeadlineExceeded, true},
		{rueidis.ErrClosing, true}, // also of a call under way
	} {
		err := failed("send to", "q", test.err, true)
		if errors.Is(err, ErrUncertain) != test.want || !errors.Is(err, test.err) {
			t.Errorf("%v: %v", test.err, err)
		}
		if err := failed("list queues", "", test.err, false); errors.Is(err, ErrUncertain) || !errors.Is(err, test.err) {
			t.Errorf("a read, %v: %v", test.err, err)
		}
	}
	if err := failed("send to", "q", nil, true); err != nil {
		t.Error(err)
	}
}

func TestLasting(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"WRONGTYPE Operation against a key": true, "NOPERM this user": true, "ERR unknown command": true, "NOAUTH Authentication required.": true,
		"READONLY You can't write": false, "LOADING Redis is loading": false, "OOM command not allowed": false, "MISCONF Errors writing": false,
		"CLUSTERDOWN Hash slot not served": false, "BUSY Redis is busy": false,
		"ERR Error running script (call to f_12ab): @user_script:3: @user_script: 3: -READONLY You can't write": false,
		"ERR Error running script (call to f_12ab): @user_script:3: OOM command not allowed":                    false,
		"ERR Error running script (call to f_12ab): @user_script:3: WRONGTYPE Operation against a key":          true,
	} {
		for _, err := range []error{answered(text), failed("send to", "q", answered(text), true)} {
			if lasting(err) != want {
				t.Errorf("%q (code %s): %v", text, redisCode(err), !want)
			}
		}
	}
	for _, err := range []error{ErrQueueNotFound, ErrReserved, failed("send to", "q", &unsentError{ErrClosed}, true)} {
		if !lasting(err) {
			t.Errorf("%v: waiting cures it", err)
		}
	}
	for _, err := range []error{io.EOF, context.DeadlineExceeded, rueidis.ErrClosing, &net.OpError{Op: "dial", Err: errors.New("refused")}} {
		if lasting(err) {
			t.Errorf("%v: waiting does not cure it", err)
		}
	}
}

// Errors have the names and messages of the Node package, match by name, and are JSON as there.
func TestErrorNames(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("wrapped: %w", invalidValue("delay", "0 and 9999999"))
	if !errors.Is(err, ErrInvalidValue) || errors.Is(err, ErrInvalidFormat) {
		t.Error(err)
	}
	var ours *Error
	if !errors.As(err, &ours) {
		t.Fatal(err)
	}
	text, marshalErr := json.Marshal(ours)
	if want := `{"name":"invalidValue","message":"delay must be between 0 and 9999999"}`; marshalErr != nil || string(text) != want {
		t.Errorf("%s: %v", text, marshalErr)
	}
}
