package xstreamq

import (
	"encoding/json"
	"fmt"
	"reflect"
)

// Codec turns bodies into bytes and back. Both methods are called from many goroutines.
type Codec[T any] interface {
	// Encode must return bytes that nobody changes afterwards.
	Encode(v T) ([]byte, error)
	// Decode may keep data: it belongs to the message. An error makes the message a dead letter, "undecodable".
	Decode(data []byte, v *T) error
}

// Validator is what a body may implement. Publish refuses a value whose Validate fails, and a message that fails it on the way
// in becomes a dead letter, "undecodable", which no handler sees.
type Validator interface{ Validate() error }

// JSON is the default codec: encoding/json.
type JSON[T any] struct{}

// Encode implements Codec.
func (JSON[T]) Encode(v T) ([]byte, error) { return json.Marshal(v) }

// Decode implements Codec.
func (JSON[T]) Decode(data []byte, v *T) error { return json.Unmarshal(data, v) }

// Bytes passes bodies as they are. The bytes a handler gets are its own.
type Bytes struct{}

// Encode implements Codec. It copies: the command may still be under way when Publish returns early.
func (Bytes) Encode(v []byte) ([]byte, error) { return append(make([]byte, 0, len(v)), v...), nil }

// Decode implements Codec.
func (Bytes) Decode(data []byte, v *[]byte) error {
	*v = data
	return nil
}

// String passes bodies as strings.
type String struct{}

// Encode implements Codec.
func (String) Encode(v string) ([]byte, error) { return []byte(v), nil }

// Decode implements Codec.
func (String) Decode(data []byte, v *string) error {
	*v = string(data)
	return nil
}

// encode checks and encodes a value that is about to be published.
func (q *Queue[T]) encode(v T) (body []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: encoding panicked: %v", ErrInvalidMessage, p)
		}
	}()
	if q.validates {
		checked := v
		if err := validate(&checked); err != nil {
			return nil, err
		}
	}
	body, err = q.codec.Encode(v)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidMessage, err)
	}
	return body, nil
}

// decode decodes and checks a body that was read.
func (q *Queue[T]) decode(data []byte, v *T) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: decoding panicked: %v", ErrInvalidMessage, p)
		}
	}()
	if err := q.codec.Decode(data, v); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidMessage, err)
	}
	if !q.validates {
		return nil
	}
	return validate(v)
}

// mayValidate reports whether values of T can implement Validator. Asked once per queue, it saves an allocation per publish.
func mayValidate[T any]() bool {
	_, ok := any(new(T)).(Validator)
	return ok || hidesMethods[T]()
}

// hidesMethods: the address of a pointer or of an interface has none of its methods.
func hidesMethods[T any]() bool {
	kind := reflect.TypeFor[T]().Kind()
	return kind == reflect.Pointer || kind == reflect.Interface
}

// validate asks a value whether it is valid, if it can tell.
func validate[T any](v *T) error {
	check, ok := any(v).(Validator)
	if !ok && hidesMethods[T]() {
		check, ok = any(*v).(Validator)
	}
	if !ok {
		return nil
	}
	if err := check.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidMessage, err)
	}
	return nil
}
