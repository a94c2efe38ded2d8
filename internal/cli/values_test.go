package cli

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xstreamq/xstreamq"
)

func TestValuesForPeople(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for d, want := range map[time.Duration]string{
		-time.Second:                        "0ms",
		999 * time.Millisecond:              "999ms",
		59*time.Second + 999:                "59s",
		time.Hour - time.Nanosecond:         "59m59s",
		time.Hour:                           "1h0m",
		day - time.Nanosecond:               "23h59m",
		400*day + 5*time.Hour + 59*60e9:     "400d5h",
		time.Duration(1<<63 - 1):            "106751d23h",
		time.Minute + 1500*time.Millisecond: "1m1s",
	} {
		if got := short(d); got != want {
			t.Errorf("short(%d) = %q, want %q", d, got, want)
		}
	}
	if got := ago(time.Now().Add(time.Hour)); got != "0ms" {
		t.Errorf("a clock that is behind makes an age of %q", got)
	}
	got := []string{ago(time.Time{}), until(time.Time{}), moment(time.Time{}), count(-1), count(0), or("")}
	if diff := cmp.Diff([]string{"-", "-", "-", "unknown", "0", "-"}, got); diff != "" {
		t.Errorf("what is not known: -want +got:\n%s", diff)
	}
}

func TestPreviewCutsNoCharacter(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                             "",
		"123456":                       "123456",
		"1234567":                      "123456…",
		"12345ü":                       "12345…",
		"1234ü7":                       "1234ü…",
		"123😀67":                       "123…",
		"\xff\xff\xff\xff\xff\xff\xff": "\xff\xff\xff\xff\xff\xff…",
		"12\x80\x80\x80\x80\x80":       "12…",
	} {
		if got := preview(in, 6); got != want {
			t.Errorf("preview(%q, 6) = %q, want %q", in, got, want)
		}
	}
	if got := preview("1234567", 0); got != "1234567" {
		t.Errorf("without a limit: %q", got)
	}
}

func TestValuesForPrograms(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 6_999_999, time.FixedZone("", 3600))
	if got := stamp(at); got == nil || *got != "2026-01-02T02:04:05.006Z" {
		t.Errorf("stamp: %v", got)
	}
	if stamp(time.Time{}) != nil || millis(0) != nil || known(xstreamq.UnknownLag) != nil {
		t.Error("what is not known is not null")
	}
	if n := known(0); n == nil || *n != 0 {
		t.Errorf("known(0) = %v", n)
	}
	if text, raw := exact("a\xffb"); text != nil || string(raw) != "a\xffb" {
		t.Errorf("exact: %v, %q", text, raw)
	}
}

func TestUnknownLag(t *testing.T) {
	t.Parallel()
	for asJSON, want := range map[bool]string{false: "unknown\n", true: `{"queue":"q","group":"g","lag":null}` + "\n"} {
		var out bytes.Buffer
		a := &app{out: &out, json: asJSON}
		if err := a.printLag("q", "g", xstreamq.UnknownLag); err != nil || out.String() != want {
			t.Errorf("printed %q, %v; want %q", out.String(), err, want)
		}
	}
	if !overMax(xstreamq.UnknownLag, 5) || overMax(5, 5) || !overMax(6, 5) {
		t.Error("--max 5 does not fail for unknown and 6 alone")
	}
}

func TestConsumersThatAreLive(t *testing.T) {
	t.Parallel()
	found := []xstreamq.Consumer{
		{Name: "gone~1000", Pending: 3, Idle: time.Hour, Lease: time.Second},
		{Name: "there", Idle: time.Second, Live: true},
	}
	for live, want := range map[bool]string{
		false: "gone~1000\t3\t1h0m\t1s\tno\nthere\t0\t1s\t-\tyes\n",
		true:  "there\t0\t1s\t-\tyes\n",
	} {
		var out bytes.Buffer
		if err := (&app{out: &out}).listConsumers(found, live, emptiness{}); err != nil || out.String() != want {
			t.Errorf("live %v: %q, %v; want %q", live, out.String(), err, want)
		}
	}
	if err := (&app{out: &bytes.Buffer{}}).listConsumers(found[:1], true, emptiness{exit: true}); !errors.Is(err, errEmpty) {
		t.Errorf("none is live: %v", err)
	}
}
