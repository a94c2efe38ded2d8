package wire

import (
	"strings"
	"time"
)

// DecodeMember fills e from a member of a delayed zset. ours says that only the engine writes to that zset (backoff), as in Decode. A
// member of another form is an error, and leaves e with its ID alone: what is before its first NUL.
func (e *Entry) DecodeMember(member string, ours bool) error {
	id, fields, err := SplitMember(member)
	if err != nil {
		id, _, _ = strings.Cut(member, "\x00")
		*e = Entry{ID: id}
		return err
	}
	*e = Entry{ID: id, Original: id}
	var pub string
	for i := 0; i+1 < len(fields); i += 2 {
		switch name, value := fields[i], fields[i+1]; {
		case name == Body && e.HasBody:
		case name == Body:
			e.Body, e.HasBody = []byte(value), true
		case name == Publish:
			pub = value
		default:
			e.set(name, value, ours)
		}
	}
	e.Published = publishedAt(e.Original, pub)
	return nil
}

// Since returns when the message of an id began to wait: when it was published, or due if it was delayed. Zero when the id tells
// no time.
func Since(id string) time.Time {
	if due, _, _ := strings.Cut(strings.TrimPrefix(id, "d"), "-"); Scheduled(id) {
		return millis(due)
	}
	return publishedAt(id, "")
}
