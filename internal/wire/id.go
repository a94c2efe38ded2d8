package wire

import (
	"math"
	"strconv"
	"strings"
)

// ID is a stream id.
type ID struct{ Ms, Seq uint64 }

// ParseID reads a stream id of the form ms-seq.
func ParseID(s string) (ID, bool) {
	ms, seq, ok := strings.Cut(s, "-")
	if !ok {
		return ID{}, false
	}
	m, err := strconv.ParseUint(ms, 10, 64)
	if err != nil {
		return ID{}, false
	}
	q, err := strconv.ParseUint(seq, 10, 64)
	if err != nil {
		return ID{}, false
	}
	return ID{m, q}, true
}

// Less reports whether id is older than other.
func (id ID) Less(other ID) bool {
	return id.Ms < other.Ms || id.Ms == other.Ms && id.Seq < other.Seq
}

// Next returns the id that follows. The last possible one is followed by itself.
func (id ID) Next() ID {
	switch {
	case id.Seq < math.MaxUint64:
		return ID{id.Ms, id.Seq + 1}
	case id.Ms < math.MaxUint64:
		return ID{id.Ms + 1, 0}
	default:
		return id
	}
}

func (id ID) String() string {
	return strconv.FormatUint(id.Ms, 10) + "-" + strconv.FormatUint(id.Seq, 10)
}
