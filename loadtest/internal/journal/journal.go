// Package journal keeps what handlers did, outside Redis: an append-only file for each run of a worker process, with one
// record when a handler starts and one when it ends, and a beat now and then. A record is handed to the system before the handler goes on, so
// kill -9 loses none.
package journal

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Kind says what a record notes.
type Kind uint8

// Kinds.
const (
	Start   Kind = 1 + iota // a handler was called
	OK                      // it returned nil
	Failed                  // it returned an error
	GivenUp                 // its context ended before it did, and it gave its message back
	Beat                    // no handler at all: the process was given time
)

// BeatEvery is the time between two beats of a process. Where they are further apart it was given no time.
const BeatEvery = 10 * time.Millisecond

// ID is the id of a stream's entry.
type ID struct {
	Ms  uint64
	Seq uint32
}

func (id ID) String() string {
	return strconv.FormatUint(id.Ms, 10) + "-" + strconv.FormatUint(uint64(id.Seq), 10)
}

// Less says whether id comes before other.
func (id ID) Less(other ID) bool {
	return id.Ms < other.Ms || id.Ms == other.Ms && id.Seq < other.Seq
}

// ParseID reads an id as Redis writes it.
func ParseID(s string) (ID, bool) {
	ms, seq, found := strings.Cut(s, "-")
	if !found {
		return ID{}, false
	}
	m, err := strconv.ParseUint(ms, 10, 64)
	if err != nil {
		return ID{}, false
	}
	n, err := strconv.ParseUint(seq, 10, 32)
	return ID{m, uint32(n)}, err == nil
}

// Record is one start or end of a handler, or a beat, which has a Kind, a Run and a time alone.
type Record struct {
	// Seq is the number of the message.
	Seq int
	// Kind says what is noted.
	Kind Kind
	// Group is the number of the group.
	Group uint8
	// Failures and Lost are the counters of the delivery.
	Failures, Lost uint16
	// Run is the number of the worker process.
	Run uint32
	// Entry is the delivery's entry, Original the message's stable id.
	Entry, Original ID
	// At is when it happened, Sent when the publish was due, both in ns since 1970.
	At, Sent int64
}

// Size is the length of a record in bytes: small enough to be written in one piece.
const Size = 64

// Append appends the encoded record.
func (r *Record) Append(to []byte) []byte {
	from := len(to)
	to = binary.LittleEndian.AppendUint64(to, uint64(r.Seq))
	for _, id := range []ID{r.Entry, r.Original} {
		to = binary.LittleEndian.AppendUint64(to, id.Ms)
		to = binary.LittleEndian.AppendUint32(to, id.Seq)
	}
	to = binary.LittleEndian.AppendUint64(to, uint64(r.At))
	to = binary.LittleEndian.AppendUint64(to, uint64(r.Sent))
	to = binary.LittleEndian.AppendUint32(to, r.Run)
	to = append(to, byte(r.Kind), r.Group)
	to = binary.LittleEndian.AppendUint16(to, r.Failures)
	to = binary.LittleEndian.AppendUint16(to, r.Lost)
	to = append(to, 0, 0)
	return binary.LittleEndian.AppendUint32(to, crc32.ChecksumIEEE(to[from:]))
}

// decode reads a record, and says whether its checksum is right.
func (r *Record) decode(b *[Size]byte) bool {
	le := binary.LittleEndian
	if le.Uint32(b[Size-4:]) != crc32.ChecksumIEEE(b[:Size-4]) {
		return false
	}
	r.Seq = int(le.Uint64(b[0:]))
	r.Entry = ID{le.Uint64(b[8:]), le.Uint32(b[16:])}
	r.Original = ID{le.Uint64(b[20:]), le.Uint32(b[28:])}
	r.At, r.Sent = int64(le.Uint64(b[32:])), int64(le.Uint64(b[40:]))
	r.Run, r.Kind, r.Group = le.Uint32(b[48:]), Kind(b[52]), b[53]
	r.Failures, r.Lost = le.Uint16(b[54:]), le.Uint16(b[56:])
	return true
}

// Writer appends records to the file of one run. It is safe for concurrent use.
type Writer struct {
	file   *os.File
	failed atomic.Pointer[error]
}

const suffix = ".journal"

func fileName(run int) string { return fmt.Sprintf("run-%06d%s", run, suffix) }

// Create makes the file of a run in a directory. A run that has one already is an error.
func Create(dir string, run int) (*Writer, error) {
	path := filepath.Join(dir, fileName(run))
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create the journal: %w", err)
	}
	return &Writer{file: file}, nil
}

// Write hands a record to the system. With an error the handler must not go on, and every later call returns it too: half a
// record may stand at the end, and nothing must come after it.
func (w *Writer) Write(r *Record) error {
	if failed := w.failed.Load(); failed != nil {
		return *failed
	}
	var space [Size]byte
	if _, err := w.file.Write(r.Append(space[:0])); err != nil {
		err = fmt.Errorf("write the journal: %w", err)
		w.failed.CompareAndSwap(nil, &err)
		return err
	}
	return nil
}

// Close closes the file.
func (w *Writer) Close() error { return w.file.Close() }
