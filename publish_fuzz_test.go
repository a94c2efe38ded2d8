package xstreamq

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/xstreamq/xstreamq/internal/wire"
)

// Headers and bodies of any bytes are what a worker reads, or are refused: no name of a header can pass for one of ours.
func FuzzHeaders(f *testing.F) {
	f.Add("traceparent", "00-ab-cd-01", "tenant", "acme", []byte(`{"id":1}`))
	f.Add("", "", "body", "x", []byte{})
	f.Add("h:", "\x00\xff", "oid", "d1-ff", []byte("4:body1:a"))
	f.Add("same", "1", "same", "2", []byte("a"))
	f.Fuzz(func(t *testing.T, name1, value1, name2, value2 string, body []byte) {
		m := withOptions([]PublishOption{WithHeader(name1, value1), WithHeader(name2, value2)})
		m.body = body
		if m.err != nil || m.check("q", len(body)) != nil {
			return
		}
		if name1 == name2 {
			t.Fatalf("header %q was set twice", name1)
		}
		var got wire.Entry
		if err := got.DecodeMember("d5-ff\x00"+packOutgoing(&m), false); err != nil {
			t.Fatal(err)
		}
		want := wire.Entry{
			ID: "d5-ff", Original: "d5-ff", Body: body, HasBody: true, Header: map[string]string{name1: value1, name2: value2},
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("-published +read:\n%s", diff)
		}
	})
}
