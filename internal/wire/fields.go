// Package wire is the envelope: the fields of a stream entry, their packed form, and stream ids.
package wire

import "strings"

// Field names of the envelope. docs/contract.md explains them.
const (
	Body     = "body"
	Header   = "h:" // prefix of one application header
	Original = "oid"
	Publish  = "pub"
	Failures = "rc"
	Lost     = "lc"
	Error    = "err"
	Reason   = "reason"
	At       = "at"
	From     = "from"
	By       = "by"
	Packed   = "xq:packed" // what did not fit into one entry when it was moved
)

// maxScheduledID bounds what is believed to be the id of a delayed message.
const maxScheduledID = 64

// Scheduled reports whether an id has the form of a delayed publish, d<due ms>-<nonce>. It is the only
// original id that an entry on the queue is believed to have.
func Scheduled(id string) bool {
	if len(id) > maxScheduledID || !strings.HasPrefix(id, "d") {
		return false
	}
	due, nonce, ok := strings.Cut(id[1:], "-")
	return ok && due != "" && nonce != "" && onlyDigits(due) && onlyHex(nonce)
}

func onlyDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

func onlyHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
