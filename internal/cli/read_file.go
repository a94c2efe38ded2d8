package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

// What files of the command line may hold, in bytes: more is not what was meant, and a device has no end.
const (
	urlFileMost = 64 << 10
	pemFileMost = 1 << 20
)

var (
	errFileTooLarge = errors.New("the file is too large")
	// errFileUnread: a pipe ends when those who write to it say so.
	errFileUnread = errors.New("the file did not end")
)

// read returns what a file holds, without a byte order mark. It waits for a pipe until ctx ends, and reads a file once: what came
// out of a pipe does not come again, and some commands connect twice. Its errors name the file, and show nothing of it.
func (c *connection) read(ctx context.Context, name string, most int64) ([]byte, error) {
	if content, ok := c.files[name]; ok {
		return content, nil
	}
	type answer struct {
		content []byte
		err     error
	}
	answered := make(chan answer, 1)
	go func() {
		content, err := readFile(name, most)
		answered <- answer{content, err}
	}()
	select {
	case a := <-answered:
		if a.err != nil {
			return nil, a.err
		}
		if c.files == nil {
			c.files = map[string][]byte{}
		}
		c.files[name] = a.content
		return a.content, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("read %s: %w: %w", name, errFileUnread, ctx.Err())
	}
}

func readFile(name string, most int64) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(content)) > most {
		return nil, fmt.Errorf("read %s: %w: it may hold %d KiB", name, errFileTooLarge, most>>10)
	}
	return bytes.TrimPrefix(content, []byte("\ufeff")), nil
}
