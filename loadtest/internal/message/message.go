// Package message is what the processes of a load test agree on: how a body looks, and which handlers fail. It knows
// nothing of the queue.
package message

import (
	"encoding/binary"
	"math"
	"strconv"
	"time"
)

// MinBody is the length of the shortest body, which is a header alone.
const MinBody = len(magic) + 8 + 8 + 4

// magic opens each body, so that a stranger's message is not taken for ours.
const magic = "xqlt"

// AppendBody appends a body of size bytes, at least MinBody: the header of message number seq, which was due to be sent at a time,
// and padding. Each byte of it can be told from a wrong one.
func AppendBody(to []byte, seq int, sent time.Time, size int) []byte {
	to = append(to, magic...)
	to = binary.BigEndian.AppendUint64(to, uint64(seq))
	to = binary.BigEndian.AppendUint64(to, uint64(sent.UnixNano()))
	to = binary.BigEndian.AppendUint32(to, uint32(max(size, MinBody)))
	for i := range size - MinBody {
		to = append(to, padding(seq, i))
	}
	return to
}

// padding is a byte behind the header: another one in the next place, and in the next message.
func padding(seq, i int) byte { return 'a' + byte((seq%26+i)%26) }

// ParseBody reads the header of a body. ok is false for one that AppendBody did not write, and for one that was changed since.
func ParseBody(body []byte) (seq int, sent time.Time, ok bool) {
	if len(body) < MinBody || string(body[:len(magic)]) != magic {
		return 0, time.Time{}, false
	}
	n := binary.BigEndian.Uint64(body[len(magic):])
	if n > math.MaxInt64 {
		return 0, time.Time{}, false
	}
	if int(binary.BigEndian.Uint32(body[MinBody-4:])) != len(body) {
		return 0, time.Time{}, false
	}
	for i, b := range body[MinBody:] {
		if b != padding(int(n), i) {
			return 0, time.Time{}, false
		}
	}
	return int(n), time.Unix(0, int64(binary.BigEndian.Uint64(body[len(magic)+8:]))), true
}

// Failure is the error of a handler that fails as planned.
const Failure = "failed as planned"

// Group is the name of a group by its number, from 0.
func Group(number int) string { return "group-" + strconv.Itoa(number) }

// Plan says which handlers fail. It is a pure function, so that whoever knows it knows which messages must die.
type Plan struct {
	// Seed makes one plan differ from another.
	Seed uint64
	// Rate is the share of failing handlers, from 0 to 1.
	Rate float64
	// MaxRetries is how many failures are retried; one more makes a dead letter.
	MaxRetries int
}

// Fails says whether a group's handler fails a message that has failed so often before.
func (p Plan) Fails(group, seq, failures int) bool {
	h := mix(p.Seed ^ mix(uint64(seq)^mix(uint64(group)<<32|uint64(uint32(failures)))))
	return float64(h>>11)/(1<<53) < p.Rate
}

// Dies says whether a message must become a dead letter of a group.
func (p Plan) Dies(group, seq int) bool {
	for failures := range p.MaxRetries + 1 {
		if !p.Fails(group, seq, failures) {
			return false
		}
	}
	return true
}

// DeathRate is the share of messages that die, as chance would have it.
func (p Plan) DeathRate() float64 { return math.Pow(p.Rate, float64(p.MaxRetries+1)) }

// mix is the finalizer of SplitMix64: each bit of x changes half of the result.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
