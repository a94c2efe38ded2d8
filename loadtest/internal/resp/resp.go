// Package resp speaks to a Redis server: RESP2 over TCP, with pipelined commands and a deadline for each exchange. It
// uses the standard library alone, so that what it tells of a server does not come from the client that is tested.
package resp

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// Kind is the type of a value.
type Kind uint8

// Kinds.
const (
	Status  Kind = 1 + iota // a simple string, such as OK
	Failure                 // an error of the server
	Integer
	Bulk
	Array
	Null // a missing bulk string or array
)

// Value is a reply.
type Value struct {
	Kind  Kind
	Text  string // of a Status, Failure or Bulk
	Int   int64  // of an Integer
	Items []Value
}

// ServerError is an error reply. The server did not do what it was asked.
type ServerError string

func (e ServerError) Error() string { return "redis: " + string(e) }

// Err returns a ServerError if the value is one.
func (v Value) Err() error {
	if v.Kind == Failure {
		return ServerError(v.Text)
	}
	return nil
}

// Bounds of what a reply may be: a server that says more is not believed.
const (
	maxBulk  = 512 << 20
	maxItems = 16 << 20
	maxDepth = 16
	maxLine  = 64 << 10
)

// ErrProtocol says that what came is no reply. The connection cannot be used any more.
var ErrProtocol = errors.New("resp: the server's answer is not understood")

// appendCommand appends a command in the form in which a server reads it.
func appendCommand(to []byte, args [][]byte) []byte {
	to = append(to, '*')
	to = strconv.AppendInt(to, int64(len(args)), 10)
	to = append(to, "\r\n"...)
	for _, arg := range args {
		to = append(to, '$')
		to = strconv.AppendInt(to, int64(len(arg)), 10)
		to = append(to, "\r\n"...)
		to = append(to, arg...)
		to = append(to, "\r\n"...)
	}
	return to
}

// ReadValue reads one reply. A reply that is cut off is io.ErrUnexpectedEOF, none at all is io.EOF.
func ReadValue(r *bufio.Reader) (Value, error) {
	v, err := readValue(r, 0)
	if err != nil {
		return Value{}, fmt.Errorf("resp: read a reply: %w", err)
	}
	return v, nil
}

func readValue(r *bufio.Reader, depth int) (Value, error) {
	if depth > maxDepth {
		return Value{}, fmt.Errorf("%w: arrays are nested more than %d deep", ErrProtocol, maxDepth)
	}
	mark, err := r.ReadByte()
	if err != nil {
		if depth > 0 {
			err = torn(err)
		}
		return Value{}, err
	}
	line, err := readLine(r)
	if err != nil {
		return Value{}, torn(err)
	}
	switch mark {
	case '+':
		return Value{Kind: Status, Text: string(line)}, nil
	case '-':
		return Value{Kind: Failure, Text: string(line)}, nil
	case ':':
		n, err := number(line)
		return Value{Kind: Integer, Int: n}, err
	case '$':
		return readBulk(r, line)
	case '*':
		return readArray(r, line, depth)
	}
	return Value{}, fmt.Errorf("%w: it begins with %q", ErrProtocol, mark)
}

func readBulk(r *bufio.Reader, line []byte) (Value, error) {
	n, err := number(line)
	switch {
	case err != nil:
		return Value{}, err
	case n == -1:
		return Value{Kind: Null}, nil
	case n < 0 || n > maxBulk:
		return Value{}, fmt.Errorf("%w: a string of %d bytes", ErrProtocol, n)
	}
	text := make([]byte, n+2)
	if _, err := io.ReadFull(r, text); err != nil {
		return Value{}, torn(err)
	}
	if string(text[n:]) != "\r\n" {
		return Value{}, fmt.Errorf("%w: a string of %d bytes goes on", ErrProtocol, n)
	}
	return Value{Kind: Bulk, Text: string(text[:n])}, nil
}

func readArray(r *bufio.Reader, line []byte, depth int) (Value, error) {
	n, err := number(line)
	switch {
	case err != nil:
		return Value{}, err
	case n == -1:
		return Value{Kind: Null}, nil
	case n < 0 || n > maxItems:
		return Value{}, fmt.Errorf("%w: an array of %d items", ErrProtocol, n)
	}
	items := make([]Value, 0, min(n, 1024)) // memory for the rest when it comes
	for range n {
		item, err := readValue(r, depth+1)
		if err != nil {
			return Value{}, err
		}
		items = append(items, item)
	}
	return Value{Kind: Array, Items: items}, nil
}

// readLine returns a line without its end, valid until the next read.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, fmt.Errorf("%w: a line is longer than %d bytes", ErrProtocol, r.Size())
	case err != nil:
		return nil, err
	case len(line) < 2 || line[len(line)-2] != '\r':
		return nil, fmt.Errorf("%w: a line ends without a carriage return", ErrProtocol)
	}
	return line[:len(line)-2], nil
}

func number(line []byte) (int64, error) {
	n, err := strconv.ParseInt(string(line), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: %q is no number", ErrProtocol, line)
	}
	return n, nil
}

// torn names the end of a connection in the middle of a reply.
func torn(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
