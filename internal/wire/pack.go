package wire

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

var errPacked = errors.New("not a packed entry")

// AppendPacked appends one string as <length>:<bytes>. A packed entry is a row of them: name, value, name, value.
func AppendPacked(b []byte, s string) []byte {
	b = strconv.AppendInt(b, int64(len(s)), 10)
	b = append(b, ':')
	return append(b, s...)
}

// Pack returns fields (name, value, name, value) as a packed entry.
func Pack(fields []string) string {
	var b []byte
	for _, f := range fields {
		b = AppendPacked(b, f)
	}
	return string(b)
}

// Unpack reads a packed entry.
func Unpack(s string) ([]string, error) {
	var fields []string
	for s != "" {
		head, rest, ok := strings.Cut(s, ":")
		n, err := strconv.ParseUint(head, 10, 64) // which takes digits alone, as the scripts do
		if !ok || err != nil || n > uint64(len(rest)) {
			return nil, fmt.Errorf("%w: bad length at field %d", errPacked, len(fields))
		}
		fields = append(fields, rest[:n])
		s = rest[n:]
	}
	if len(fields)%2 != 0 {
		return nil, fmt.Errorf("%w: a field has no value", errPacked)
	}
	return fields, nil
}

// SplitMember takes a member of a delayed zset apart: id, NUL, packed entry.
func SplitMember(member string) (id string, fields []string, err error) {
	id, packed, ok := strings.Cut(member, "\x00")
	if !ok {
		return "", nil, fmt.Errorf("%w: no NUL after the id", errPacked)
	}
	fields, err = Unpack(packed)
	return id, fields, err
}
