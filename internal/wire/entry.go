package wire

import (
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// Entry is one decoded stream entry.
type Entry struct {
	ID        string // where it lies now
	Original  string // stable id
	Body      []byte
	HasBody   bool
	Header    map[string]string
	Failures  int
	Lost      int
	Published time.Time // zero when the ids do not tell

	// Set on dead letters and redeliveries only.
	Error  string
	Reason string
	At     time.Time
	From   string
	By     string
}

// Decode fills e from the fields of an entry. ours says that only the engine writes to that stream (retry, DLQ): there the
// reserved fields are believed. On the queue anybody may write them, and all but the id of a delayed publish are ignored.
// Strings and Body share memory with fields.
func (e *Entry) Decode(id string, fields []rueidis.RedisMessage, ours bool) {
	*e = Entry{ID: id, Original: id}
	var pub string
	for i := 0; i+1 < len(fields); i += 2 {
		name, err := fields[i].ToString()
		if err != nil {
			continue
		}
		if name == Body {
			if !e.HasBody {
				e.Body, err = fields[i+1].AsBytes()
				e.HasBody = err == nil
			}
			continue
		}
		value, err := fields[i+1].ToString()
		if err != nil {
			continue
		}
		if name == Publish {
			pub = value
			continue
		}
		e.set(name, value, ours)
	}
	e.Published = publishedAt(e.Original, pub)
}

func (e *Entry) set(name, value string, ours bool) {
	switch {
	case strings.HasPrefix(name, Header):
		if e.Header == nil {
			e.Header = make(map[string]string, 4)
		}
		if _, ok := e.Header[name[len(Header):]]; !ok {
			e.Header[name[len(Header):]] = value
		}
	case name == Original:
		if ours || Scheduled(value) {
			e.Original = value
		}
	case !ours:
	case name == Failures:
		e.Failures = count(value)
	case name == Lost:
		e.Lost = count(value)
	case name == Error:
		e.Error = value
	case name == Reason:
		e.Reason = value
	case name == At:
		e.At = millis(value)
	case name == From:
		e.From = value
	case name == By:
		e.By = value
	case name == Packed:
		e.unpack(value)
	}
}

// unpack takes headers alone: our own fields are never packed, so what else is in there is a stranger's.
func (e *Entry) unpack(packed string) {
	more, err := Unpack(packed)
	if err != nil {
		return
	}
	for i := 0; i+1 < len(more); i += 2 {
		if strings.HasPrefix(more[i], Header) {
			e.set(more[i], more[i+1], true)
		}
	}
}

// publishedAt: a delayed message carries its publish time; every other id is made of it.
func publishedAt(original, pub string) time.Time {
	if Scheduled(original) {
		return millis(pub)
	}
	id, ok := ParseID(original)
	if !ok || id.Ms > 1<<53 {
		return time.Time{}
	}
	return time.UnixMilli(int64(id.Ms))
}

func millis(s string) time.Time {
	ms, err := strconv.ParseInt(s, 10, 64)
	if err != nil || ms <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

func count(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return 0
	}
	return n
}
