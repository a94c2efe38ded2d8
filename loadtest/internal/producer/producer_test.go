package producer

import (
	"context"
	"encoding/binary"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xstreamq/xstreamq/internal/redistest"
	"github.com/xstreamq/xstreamq/loadtest/internal/message"
	"github.com/xstreamq/xstreamq/loadtest/internal/resp"
)

const patience = 60 * time.Second

func options(t *testing.T, url, prefix string, messages int) Options {
	t.Helper()
	server, err := resp.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	return Options{
		Server: server, KeyPrefix: prefix, Queue: "q", Messages: messages, Body: 64, Connections: 3,
		AckFile: filepath.Join(t.TempDir(), "outcomes"),
	}
}

// publish runs a producer and returns the outcomes by number, each of which there must be once.
func publish(t *testing.T, o Options, meanwhile func(p *Producer)) (map[int]Ack, Counts) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	if meanwhile != nil {
		meanwhile(p)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	acks := map[int]Ack{}
	if err := ReadAcks(o.AckFile, func(a Ack) {
		if _, twice := acks[a.Seq]; twice {
			t.Errorf("message %d has two outcomes", a.Seq)
		}
		acks[a.Seq] = a
	}); err != nil {
		t.Fatal(err)
	}
	if len(acks) != o.Messages || p.Counts().All() != int64(o.Messages) {
		t.Errorf("%d outcomes and %+v, of %d messages", len(acks), p.Counts(), o.Messages)
	}
	return acks, p.Counts()
}

// stored returns the ids on the stream by number, with the size of the bodies. No message may be there twice.
func stored(t *testing.T, url, prefix string, size int) map[int]string {
	t.Helper()
	server, err := resp.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := resp.Dial(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	v, err := conn.Do("XRANGE", prefix+"{q}", "-", "+")
	if err != nil {
		t.Fatal(err)
	}
	ids := map[int]string{}
	for _, entry := range v.Items {
		fields := entry.Items[1].Items
		if len(fields) != 2 || fields[0].Text != "body" || len(fields[1].Text) != size {
			t.Fatalf("an entry is %+v", entry)
		}
		seq, _, ok := message.ParseBody([]byte(fields[1].Text))
		if _, twice := ids[seq]; twice || !ok {
			t.Errorf("message %d, %v, is on the stream twice", seq, ok)
		}
		ids[seq] = entry.Items[0].Text
	}
	return ids
}

// agree checks that what is acknowledged is there under its id, what was refused is not, and what is unknown is there or not.
func agree(t *testing.T, acks map[int]Ack, ids map[int]string) (unknownStored int) {
	t.Helper()
	for seq, a := range acks {
		id, there := ids[seq]
		switch {
		case a.Status == Acknowledged && id != strconv.FormatUint(a.Ms, 10)+"-"+strconv.FormatUint(uint64(a.N), 10):
			t.Errorf("message %d is acknowledged as %d-%d and stored as %q", seq, a.Ms, a.N, id)
		case a.Status == Refused && there:
			t.Errorf("message %d was refused, and is stored as %q", seq, id)
		case a.Status == Unknown && there:
			unknownStored++
		}
	}
	return unknownStored
}

func TestPublishesEachMessageOnce(t *testing.T) {
	t.Parallel()
	prefix := redistest.Prefix(t)
	o := options(t, redistest.URL(t), prefix, 1234)
	var told atomic.Int64
	o.Published = func(time.Duration) { told.Add(1) }
	acks, counts := publish(t, o, nil)
	agree(t, acks, stored(t, redistest.URL(t), prefix, o.Body))
	if want := (Counts{Acknowledged: 1234}); counts != want || told.Load() != 1234 {
		t.Errorf("%+v, %d were told of", counts, told.Load())
	}
}

// match is what the request of a message contains.
func match(seq int) []byte {
	return binary.BigEndian.AppendUint64([]byte("xqlt"), uint64(seq))
}

// A connection that is cut between a request and its reply makes unknown publishes; they are not sent again, and all others are
// acknowledged.
func TestCutConnection(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]bool{"after the request": true, "before the request": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			prefix := redistest.Prefix(t)
			proxy := redistest.NewProxy(t, redistest.URL(t))
			const victim = 57
			cut := proxy.CutBeforeRequest
			if after {
				cut = proxy.CutAfterRequest
			}
			fired := cut(match(victim))
			o := options(t, proxy.URL(), prefix, 300)
			o.Rate = 1000
			acks, counts := publish(t, o, nil)
			<-fired
			ids := stored(t, redistest.URL(t), prefix, o.Body)
			found := agree(t, acks, ids)
			_, there := ids[victim]
			if acks[victim].Status != Unknown || there != after || counts.Unknown == 0 || counts.Unknown > MaxBatch || counts.Refused > 0 {
				t.Errorf("the message on the cut connection: %+v, stored %v; %+v, of the unknown %d are stored", acks[victim], there, counts, found)
			}
		})
	}
}

func TestRefusedPublishes(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	o := options(t, server.URL(), "", 5)
	conn, err := resp.Dial(t.Context(), o.Server)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Do("SET", "{q}", "no stream"); err != nil {
		t.Fatal(err)
	}
	_, counts := publish(t, o, nil)
	if diff := cmp.Diff(Counts{Refused: 5}, counts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// An outage is waited for: what was due meanwhile is published when the server is back, and nothing that was acknowledged is
// missing.
func TestOutage(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{AOF: "always"})
	o := options(t, server.URL(), "", 1500)
	o.Rate = 1000
	acks, counts := publish(t, o, func(p *Producer) {
		redistest.WaitFor(t, patience, "some publishes", func() bool { return p.Counts().Acknowledged > 100 })
		server.Kill()
		if err := server.Restart(); err != nil {
			t.Error(err)
		}
	})
	agree(t, acks, stored(t, server.URL(), "", o.Body))
	if counts.Unknown > int64(o.Connections*MaxBatch) || counts.Refused > 0 {
		t.Errorf("%+v", counts)
	}
}

func TestInterruptedProducerKeepsItsOutcomes(t *testing.T) {
	t.Parallel()
	prefix := redistest.Prefix(t)
	o := options(t, redistest.URL(t), prefix, 1_000_000)
	o.Rate = 500
	ctx, cancel := context.WithCancel(t.Context())
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	redistest.WaitFor(t, patience, "some publishes", func() bool { return p.Counts().Acknowledged > 20 })
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	acks := map[int]Ack{}
	if err := ReadAcks(o.AckFile, func(a Ack) { acks[a.Seq] = a }); err != nil {
		t.Fatal(err)
	}
	agree(t, acks, stored(t, redistest.URL(t), prefix, o.Body))
	if int64(len(acks)) != p.Counts().All() {
		t.Errorf("%d outcomes of %+v", len(acks), p.Counts())
	}
}

func TestBadOptions(t *testing.T) {
	t.Parallel()
	for _, change := range []func(*Options){
		func(o *Options) { o.Body = message.MinBody - 1 }, func(o *Options) { o.Messages = -1 }, func(o *Options) { o.Rate = -1 },
		func(o *Options) { o.AckFile = filepath.Join(o.AckFile, "nowhere") },
	} {
		o := Options{Body: 64, Messages: 1, AckFile: filepath.Join(t.TempDir(), "outcomes")}
		change(&o)
		if p, err := New(o); err == nil {
			t.Errorf("%+v was accepted: %v", o, p)
		}
	}
}
