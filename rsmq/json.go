package rsmq

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MarshalJSON writes the message as the Node package returns it: id, message, rc, fr and sent, the last two in ms. A body or a time of
// sending that is not known is null.
func (m Message) MarshalJSON() ([]byte, error) {
	out := struct {
		ID      string       `json:"id"`
		Message *string      `json:"message"`
		RC      int64        `json:"rc"`
		FR      int64        `json:"fr"`
		Sent    *json.Number `json:"sent"`
	}{ID: m.ID, RC: m.ReceiveCount}
	if !m.NoBody {
		out.Message = &m.Body
	}
	if !m.Sent.IsZero() {
		sent := sentMillis(m.Sent)
		out.Sent = &sent
	}
	if !m.FirstReceived.IsZero() {
		out.FR = m.FirstReceived.UnixMilli()
	}
	return plainJSON(out)
}

// plainJSON writes <, > and & as they are, which the Node package does too.
func plainJSON(v any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), err
}

// sentMillis is a time in ms with its microseconds as a fraction, in the form that JavaScript prints.
func sentMillis(t time.Time) json.Number {
	us := t.UnixMicro()
	text := strconv.FormatInt(us/1000, 10)
	if rest := us % 1000; rest != 0 {
		text += "." + strings.TrimRight(strconv.FormatInt(1000+rest, 10)[1:], "0")
	}
	return json.Number(text)
}

// MarshalJSON writes the attributes as the Node package returns them, times in seconds, and besides them visiblemsgs. A missing one is
// null.
func (a Attributes) MarshalJSON() ([]byte, error) {
	number := func(name string, n int64) *int64 {
		if slices.Contains(a.Missing, name) {
			return nil
		}
		return &n
	}
	return json.Marshal(struct {
		VT       *int64 `json:"vt"`
		Delay    *int64 `json:"delay"`
		MaxSize  *int64 `json:"maxsize"`
		Received *int64 `json:"totalrecv"`
		Sent     *int64 `json:"totalsent"`
		Created  *int64 `json:"created"`
		Modified *int64 `json:"modified"`
		Messages int64  `json:"msgs"`
		Hidden   int64  `json:"hiddenmsgs"`
		Visible  int64  `json:"visiblemsgs"`
	}{
		number("vt", seconds(a.VisibilityTimeout)), number("delay", seconds(a.Delay)), number("maxsize", int64(a.MaxSize)),
		number("totalrecv", a.Received), number("totalsent", a.Sent), number("created", a.Created.Unix()), number("modified", a.Modified.Unix()),
		a.Messages, a.Hidden, a.Visible,
	})
}
