package xstreamq

import (
	"context"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/wire"
)

// What one call fetches of a stream, whose entries may hold bodies of any size: as many as seem to fit into pageBytes.
const (
	pageFirst = 4
	pageMost  = 500
	pageBytes = 512 << 10
)

// storedEntry is an entry as Redis holds it.
type storedEntry struct {
	id     string
	fields []rueidis.RedisMessage
}

// entryPages walks a stream in pages, from one id to another, both included. Nothing is consumed, and no call is long.
type entryPages struct {
	client     *Client
	key        string
	next, last string // "-" and "+" for the ends of the stream
	count      int    // of the next page; 0 = the first
	done       bool
}

func (c *Client) pages(key, first, last string) *entryPages {
	return &entryPages{client: c, key: key, next: first, last: last, count: pageFirst}
}

// more reports whether there may be another page.
func (p *entryPages) more() bool { return !p.done }

// page fetches the next one, of at most limit entries; 0 = as many as a page takes.
func (p *entryPages) page(ctx context.Context, limit int) ([]storedEntry, error) {
	n := p.count
	if limit > 0 {
		n = min(n, limit)
	}
	rc := p.client.redis
	found, err := bounded(ctx, func(ctx context.Context) ([]rueidis.RedisMessage, error) {
		return rc.Do(ctx, rc.B().Xrange().Key(p.key).Start(p.next).End(p.last).Count(int64(n)).Build()).ToArray()
	})
	if err != nil {
		return nil, keyError(p.key, err)
	}
	entries := make([]storedEntry, len(found))
	size := 0
	for i, m := range found {
		e := &entries[i]
		if e.id, e.fields, err = splitEntry(m); err != nil {
			return nil, err
		}
		size += sizeOf(e.fields)
	}
	p.advance(entries, n, size)
	return entries, nil
}

func (p *entryPages) advance(entries []storedEntry, asked, size int) {
	if len(entries) < asked {
		p.done = true
		return
	}
	last, ok := wire.ParseID(entries[len(entries)-1].id)
	if !ok || last.Next() == last {
		p.done = true
		return
	}
	p.next = last.Next().String()
	p.count = nextPage(p.count, len(entries), size)
}

// nextPage is how many to fetch after a page of so many, by the size of those that were seen.
func nextPage(count, seen, size int) int {
	fit := pageBytes / max(1, size/seen)
	return max(1, min(fit, 4*count, pageMost))
}

func sizeOf(fields []rueidis.RedisMessage) int {
	size := 0
	for i := range fields {
		s, _ := fields[i].ToString()
		size += len(s)
	}
	return size
}
