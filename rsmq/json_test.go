package rsmq

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"
)

// Messages and attributes are JSON as the Node package makes it.
func TestJSON(t *testing.T) {
	t.Parallel()
	at := time.UnixMicro
	for want, v := range map[string]any{
		`{"id":"i","message":"","rc":1,"fr":1700000000000,"sent":1700000000000}`: Message{ID: "i", ReceiveCount: 1, FirstReceived: at(1700000000000999), Sent: at(1700000000000000)},
		`{"id":"i","message":"m","rc":2,"fr":0,"sent":1700000002123.456}`:        Message{ID: "i", Body: "m", ReceiveCount: 2, Sent: at(1700000002123456)},
		`{"id":"i","message":"m","rc":2,"fr":0,"sent":1700000002123.5}`:          Message{ID: "i", Body: "m", ReceiveCount: 2, Sent: at(1700000002123500)},
		`{"id":"i","message":"m","rc":2,"fr":0,"sent":1700000002123.05}`:         Message{ID: "i", Body: "m", ReceiveCount: 2, Sent: at(1700000002123050)},
		`{"id":"i","message":null,"rc":2,"fr":0,"sent":null}`:                    Message{ID: "i", NoBody: true, ReceiveCount: 2},
		`{"id":"i","message":"\u003c\ufffd\u003e","rc":0,"fr":0,"sent":0}`:       Message{ID: "i", Body: "<\xff>", Sent: at(0)},
		`{"id":"i","message":"m","rc":1,"fr":0,"sent":3656158440062.975}`:        Message{ID: "i", Body: "m", ReceiveCount: 1, Sent: sentAt("zzzzzzzzzz")},
		`{"id":"i","message":"m","rc":1,"fr":0,"sent":0.035}`:                    Message{ID: "i", Body: "m", ReceiveCount: 1, Sent: sentAt("Z:zzzzzzzz")},
		`{"vt":30,"delay":0,"maxsize":-1,"totalrecv":2,"totalsent":3,"created":1700000000,"modified":0,"msgs":4,"hiddenmsgs":5,"visiblemsgs":6}`: Attributes{
			VisibilityTimeout: 30 * time.Second, MaxSize: Unlimited, Received: 2, Sent: 3, Created: time.Unix(1700000000, 0), Modified: time.Unix(0, 0),
			Messages: 4, Hidden: 5, Visible: 6,
		},
		`{"vt":null,"delay":null,"maxsize":null,"totalrecv":null,"totalsent":null,"created":null,"modified":null,"msgs":0,"hiddenmsgs":0,"visiblemsgs":0}`: Attributes{
			Missing: []string{"vt", "delay", "maxsize", "totalrecv", "totalsent", "created", "modified"},
		},
	} {
		got, err := json.Marshal(v)
		if err != nil || string(got) != want {
			t.Errorf("%s: %v; want %s", got, err, want)
		}
	}
}

// Ids of other programs tell their time as far as they can.
func TestSentAt(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]time.Time{
		"gqll7vatqf0000000000000000000001": time.UnixMicro(1700000000000007), "GQLL7VATQF": time.UnixMicro(1700000000000007),
		"z": time.UnixMicro(35), "z-zzzzzzzz": time.UnixMicro(35), "0": time.UnixMicro(0), "": {}, ":zzzzzzzzz": {}, "-1": {}, "+1": {}, "_1": {}, "\u212a": {},
	} {
		if got := sentAt(id); !got.Equal(want) {
			t.Errorf("%q: %s, want %s", id, got.UTC(), want.UTC())
		}
	}
}

// A body stands in JSON as the Node package writes it, where the encoder lets it.
func TestJSONIsPlain(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(Message{ID: "x", Body: "<a>&\u2028"}); err != nil {
		t.Fatal(err)
	}
	if want := `{"id":"x","message":"<a>&\u2028","rc":0,"fr":0,"sent":null}` + "\n"; text.String() != want {
		t.Errorf("%s, want %s", text.String(), want)
	}
}
