package xstreamq_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xstreamq/xstreamq"
)

// parcel is a body with rules of its own, checked by its address.
type parcel struct {
	ID    int
	Notes []string `json:",omitempty"`
}

func (p *parcel) Validate() error {
	switch {
	case p.ID == -999:
		panic("validation panics")
	case p.ID < 0:
		return fmt.Errorf("ID is %d", p.ID)
	}
	return nil
}

// grams checks itself by value.
type grams int

func (g grams) Validate() error {
	if g < 0 {
		return errors.New("less than nothing")
	}
	return nil
}

// testCodec publishes a value through a queue, and checks what the handler gets and what is stored.
func testCodec[T any](t *testing.T, v T, raw string, opts ...xstreamq.QueueOption[T]) {
	t.Helper()
	r := newForeignRig(t, xstreamq.Config{})
	q := foreignQueue(t, r.client, "q", opts...)
	got := make(chan xstreamq.Message[T], 10)
	if _, err := q.Subscribe("g", func(_ context.Context, m *xstreamq.Message[T]) error {
		got <- *m
		if m.Attempt == 1 {
			return errors.New("once more")
		}
		return nil
	}, xstreamq.SubscribeOptions{Backoff: xstreamq.Backoff{Initial: time.Millisecond}}); err != nil {
		t.Fatal(err)
	}
	r.start()
	if _, err := q.Publish(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		m := foreignAwait(t, got)
		if diff := cmp.Diff(v, m.Body); diff != "" || string(m.Raw) != raw {
			t.Errorf("attempt %d: raw %q, body (-want +got):\n%s", m.Attempt, m.Raw, diff)
		}
	}
}

// Codecs: JSON by default, Bytes, String and one's own: what is published is what the handler gets, also after a retry.
func TestCodecs(t *testing.T) {
	t.Parallel()
	t.Run("JSON struct", func(t *testing.T) {
		t.Parallel()
		testCodec(t, parcel{ID: 1, Notes: []string{"<ä>"}}, `{"ID":1,"Notes":["\u003cä\u003e"]}`)
	})
	t.Run("JSON pointer", func(t *testing.T) {
		t.Parallel()
		testCodec(t, &parcel{ID: 2}, `{"ID":2}`)
	})
	t.Run("JSON any", func(t *testing.T) {
		t.Parallel()
		testCodec[any](t, map[string]any{"a": []any{1.5, nil}}, `{"a":[1.5,null]}`)
	})
	t.Run("JSON bytes", func(t *testing.T) {
		t.Parallel()
		testCodec(t, []byte("\x00\xff"), `"AP8="`, xstreamq.WithCodec[[]byte](xstreamq.JSON[[]byte]{}))
	})
	t.Run("Bytes", func(t *testing.T) {
		t.Parallel()
		testCodec(t, []byte("\x00\xff\r\n"), "\x00\xff\r\n", xstreamq.WithCodec[[]byte](xstreamq.Bytes{}))
	})
	t.Run("String", func(t *testing.T) {
		t.Parallel()
		testCodec(t, "\x00\xff\r\n", "\x00\xff\r\n", xstreamq.WithCodec[string](xstreamq.String{}))
	})
	t.Run("one's own", func(t *testing.T) {
		t.Parallel()
		testCodec(t, uint32(0x01020304), "\x01\x02\x03\x04", xstreamq.WithCodec[uint32](bigEndian{}))
	})
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		c := open(t, xstreamq.Config{})
		if _, err := xstreamq.NewQueue(c, "q", xstreamq.WithCodec[int](nil)); !errors.Is(err, xstreamq.ErrInvalidConfig) {
			t.Errorf("a nil codec: %v", err)
		}
		if _, err := xstreamq.NewQueue[int](c, "q", nil); err != nil {
			t.Errorf("a nil option: %v", err)
		}
	})
}

type bigEndian struct{}

func (bigEndian) Encode(v uint32) ([]byte, error) { return binary.BigEndian.AppendUint32(nil, v), nil }

func (bigEndian) Decode(data []byte, v *uint32) error {
	if len(data) != 4 {
		return fmt.Errorf("%d bytes", len(data))
	}
	*v = binary.BigEndian.Uint32(data)
	return nil
}

// testUndecodable has a worker read bodies that no handler may see, among two that one may.
func testUndecodable[T any](t *testing.T, good string, bad []string, opts ...xstreamq.QueueOption[T]) {
	t.Helper()
	r := newForeignRig(t, xstreamq.Config{})
	q := foreignQueue(t, r.client, "q", opts...)
	var mu sync.Mutex
	var handled []string
	deaths := make(chan xstreamq.DeadMessage, 100)
	if _, err := q.Subscribe("g", func(_ context.Context, m *xstreamq.Message[T]) error {
		mu.Lock()
		defer mu.Unlock()
		handled = append(handled, string(m.Raw))
		return nil
	}, xstreamq.SubscribeOptions{
		OnDeadLetter: func(_ context.Context, d xstreamq.DeadMessage) { deaths <- d },
	}); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{} // body by id
	r.add("body", good)
	for _, body := range bad {
		want[r.add("body", body, "h:tenant", "a", "mine", "\xff")] = body
	}
	r.add("body", good)
	r.start()
	r.waitEnded("g")

	for range bad {
		d := foreignAwait(t, deaths)
		body, ok := want[d.OriginalID]
		if !ok || string(d.Body) != body || d.Reason != xstreamq.Undecodable || d.Failures != 0 || d.LostLeases != 0 ||
			d.Header["tenant"] != "a" || d.Error == "" || d.From != d.OriginalID {
			t.Errorf("dead letter %+v, want the body %q", d, body)
		}
	}
	r.stop()
	if diff := cmp.Diff([]string{good, good}, handled); diff != "" {
		t.Errorf("handled (-want +got):\n%s", diff)
	}
	dead := r.entries(".g.dlq")
	if len(dead) != len(bad) {
		t.Errorf("%d dead letters, want %d", len(dead), len(bad))
	}
	for _, e := range dead {
		fields := []string{"body", want[e.get("oid")], "h:tenant", "a", "mine", "\xff"}
		if diff := cmp.Diff(fields, e.strangers(t, false)); diff != "" {
			t.Errorf("dead letter %s (-want +got):\n%s", e.ID, diff)
		}
	}
}

// Undecodable (P6): what cannot be decoded, or fails its Validate, is dead at once, byte-exact, without a retry and unseen by the
// handler, and holds up nobody.
func TestUndecodableBodies(t *testing.T) {
	t.Parallel()
	notJSON := []string{"", "{", "\xff\x00", `{"ID":"x"}`, `[]`, "{}{}", strings.Repeat("[", 100_000), strings.Repeat("x", 3<<20)}
	t.Run("JSON", func(t *testing.T) {
		t.Parallel()
		testUndecodable[parcel](t, `{"ID":1}`, notJSON)
	})
	t.Run("Validate of the address", func(t *testing.T) {
		t.Parallel()
		testUndecodable[parcel](t, `{}`, []string{`{"ID":-1}`, `{"ID":-999}`})
	})
	t.Run("Validate of a pointer", func(t *testing.T) {
		t.Parallel()
		testUndecodable[*parcel](t, `{}`, []string{`{"ID":-1}`, `{"ID":-999}`, `null`})
	})
	t.Run("Validate of the value", func(t *testing.T) {
		t.Parallel()
		testUndecodable[grams](t, `5`, []string{`-5`, `5.5`})
	})
	t.Run("one's own codec", func(t *testing.T) {
		t.Parallel()
		testUndecodable(t, "1234", []string{"", "123", "12345"}, xstreamq.WithCodec[uint32](bigEndian{}))
	})
	t.Run("a codec that panics", func(t *testing.T) {
		t.Parallel()
		testUndecodable(t, "good", []string{"panic", "nil panic", "bad error"}, xstreamq.WithCodec[string](touchy{}))
	})
}

// touchy is a codec that fails in every way it can.
type touchy struct{}

func (touchy) Encode(v string) ([]byte, error) { return []byte(v), touch(v) }

func (touchy) Decode(data []byte, v *string) error {
	*v = string(data)
	return touch(*v)
}

func touch(v string) error {
	switch v {
	case "panic":
		panic("the codec panics")
	case "nil panic":
		var nothing *parcel
		nothing.ID++
	case "bad error":
		return panickingError{}
	case "goexit":
		runtime.Goexit()
	}
	return nil
}

type panickingError struct{}

func (panickingError) Error() string { panic("so does its error") }

// A codec that ends its goroutine costs its message its retries, as a handler would, and the process nothing.
func TestCodecGoexit(t *testing.T) {
	t.Parallel()
	r := newForeignRig(t, xstreamq.Config{})
	q := foreignQueue(t, r.client, "q", xstreamq.WithCodec[string](touchy{}))
	handled := make(chan string, 100)
	if _, err := q.Subscribe("g", func(_ context.Context, m *xstreamq.Message[string]) error {
		handled <- m.Body
		return nil
	}, xstreamq.SubscribeOptions{Concurrency: 2, MaxRetries: 3, Backoff: xstreamq.Backoff{Initial: time.Millisecond}}); err != nil {
		t.Fatal(err)
	}
	r.start()
	for range 3 {
		r.add("body", "goexit")
	}
	r.add("body", "good")
	r.waitEnded("g")
	r.stop()
	if got := foreignAwait(t, handled); got != "good" || len(handled) != 0 {
		t.Errorf("handled %q and %d more", got, len(handled))
	}
	dead := r.entries(".g.dlq")
	if len(dead) != 3 {
		t.Fatalf("%d dead letters, want 3", len(dead))
	}
	for _, e := range dead {
		if e.get("reason") != "failed" || e.get("rc") != "4" || e.get("body") != "goexit" || !strings.Contains(e.get("err"), "Goexit") {
			t.Errorf("dead letter %q", e.Fields)
		}
	}
}

// Publish refuses what does not encode, or fails its Validate, before it reaches Redis; a codec that panics only costs its message.
func TestPublishRefusesInvalidBodies(t *testing.T) {
	t.Parallel()
	r := newForeignRig(t, xstreamq.Config{})
	check := func(name string, err error, says string) {
		t.Helper()
		if !errors.Is(err, xstreamq.ErrInvalidMessage) || errors.Is(err, xstreamq.ErrPublishUncertain) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want ErrInvalidMessage that says %q", name, err, says)
		}
	}
	ctx := t.Context()
	parcels := foreignQueue[parcel](t, r.client, "q")
	_, err := parcels.Publish(ctx, parcel{ID: -1})
	check("a value, checked by its address", err, "ID is -1")
	_, err = parcels.Publish(ctx, parcel{ID: -1}, xstreamq.WithDelay(time.Hour))
	check("the same, delayed", err, "ID is -1")
	_, err = parcels.Publish(ctx, parcel{ID: -999})
	check("a Validate that panics", err, "validation panics")
	_, err = foreignQueue[*parcel](t, r.client, "q").Publish(ctx, &parcel{ID: -1})
	check("a pointer", err, "ID is -1")
	_, err = foreignQueue[*parcel](t, r.client, "q").Publish(ctx, nil)
	check("a nil pointer", err, "nil pointer")
	_, err = foreignQueue[any](t, r.client, "q").Publish(ctx, grams(-1))
	check("an interface", err, "less than nothing")
	_, err = foreignQueue[chan int](t, r.client, "q").Publish(ctx, nil)
	check("what is not JSON", err, "chan int")
	strange := foreignQueue(t, r.client, "q", xstreamq.WithCodec[string](touchy{}))
	for _, body := range []string{"panic", "nil panic", "bad error"} {
		_, err = strange.Publish(ctx, body)
		check(body, err, "")
	}
	for i, result := range strange.PublishBatch(ctx, []xstreamq.Outgoing[string]{{Body: "panic"}, {Body: "good"}, {Body: "bad error"}}) {
		if i == 1 {
			if result.Err != nil || result.ID == "" {
				t.Errorf("the valid message of a batch: %+v", result)
			}
			continue
		}
		check("batch", result.Err, "")
	}
	if n, delayed := r.len(""), r.len(".delayed"); n != 1 || delayed != 0 {
		t.Errorf("%d messages are stored and %d delayed, want the valid one alone", n, delayed)
	}
}
