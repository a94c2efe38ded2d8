package producer

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
)

// Status is what is known of a publish.
type Status uint8

// Statuses.
const (
	// Acknowledged: the server returned an id, so the message must not be lost.
	Acknowledged Status = 1 + iota
	// Refused: the server returned an error, so there is no such message.
	Refused
	// Unknown: the connection ended between request and reply. The message may be there once, or not at all.
	Unknown
)

// Ack is the outcome of one publish.
type Ack struct {
	// Seq is the number of the message.
	Seq    int
	Status Status
	// Ms and N are the two parts of the id of an acknowledged one.
	Ms uint64
	N  uint32
}

// ackSize is the length of an outcome in the file.
const ackSize = 8 + 8 + 4 + 4

func (a Ack) append(to []byte) []byte {
	to = binary.LittleEndian.AppendUint64(to, uint64(a.Seq))
	to = binary.LittleEndian.AppendUint64(to, a.Ms)
	to = binary.LittleEndian.AppendUint32(to, a.N)
	return binary.LittleEndian.AppendUint32(to, uint32(a.Status))
}

// WriteAcks writes a file of outcomes, as a producer does.
func WriteAcks(path string, acks []Ack) error {
	file, err := createAcks(path)
	if err != nil {
		return err
	}
	var b []byte
	for _, a := range acks {
		b = a.append(b)
	}
	return errors.Join(file.write(b), file.close())
}

// ReadAcks calls f with each outcome in a file, in no particular order.
func ReadAcks(path string, f func(Ack)) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open the file of outcomes: %w", err)
	}
	defer file.Close()
	in := bufio.NewReaderSize(file, 64<<10)
	var b [ackSize]byte
	for {
		_, err := io.ReadFull(in, b[:])
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the file of outcomes: %w", err)
		}
		le := binary.LittleEndian
		a := Ack{Seq: int(le.Uint64(b[0:])), Ms: le.Uint64(b[8:]), N: le.Uint32(b[16:]), Status: Status(le.Uint32(b[20:]))}
		if a.Status < Acknowledged || a.Status > Unknown {
			return fmt.Errorf("the file of outcomes holds status %d of message %d", a.Status, a.Seq)
		}
		f(a)
	}
}

// ackFile is written by all connections.
type ackFile struct {
	mu   sync.Mutex
	file *os.File
	out  *bufio.Writer
}

func createAcks(path string) (*ackFile, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create the file of outcomes: %w", err)
	}
	return &ackFile{file: file, out: bufio.NewWriterSize(file, 64<<10)}, nil
}

func (a *ackFile) write(b []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, err := a.out.Write(b); err != nil {
		return fmt.Errorf("write the file of outcomes: %w", err)
	}
	return nil
}

func (a *ackFile) close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := errors.Join(a.out.Flush(), a.file.Close()); err != nil {
		return fmt.Errorf("write the file of outcomes: %w", err)
	}
	return nil
}

// parseID reads the id of an entry.
func parseID(s string) (ms uint64, n uint32, ok bool) {
	before, after, found := strings.Cut(s, "-")
	if !found {
		return 0, 0, false
	}
	ms, err := strconv.ParseUint(before, 10, 64)
	if err != nil {
		return 0, 0, false
	}
	seq, err := strconv.ParseUint(after, 10, 32)
	return ms, uint32(seq), err == nil
}
