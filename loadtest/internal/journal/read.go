package journal

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// readBuffer is a whole number of records.
const readBuffer = 1024 * Size

// Files returns the journals in a directory, by run.
func Files(dir string) ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if err != nil {
		return nil, fmt.Errorf("list the journals: %w", err)
	}
	slices.Sort(paths)
	return paths, nil
}

// Read calls f with each record of a file, in the order in which they were written; f must not keep it. A last record
// that was cut short is left out: its process was killed while it wrote. Anything else that is no record is an error,
// and so is a record of another run than the file is of.
func Read(path string, f func(*Record)) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open the journal: %w", err)
	}
	defer file.Close()
	name := filepath.Base(path)
	var foreign error
	_, err = read(bufio.NewReaderSize(file, readBuffer), func(r *Record) {
		if fileName(int(r.Run)) != name {
			foreign = fmt.Errorf("it holds a record of run %d", r.Run)
			return
		}
		f(r)
	})
	if err == nil {
		err = foreign
	}
	if err != nil {
		return fmt.Errorf("journal %s: %w", name, err)
	}
	return nil
}

// read returns how many bytes whole records had.
func read(from io.Reader, f func(*Record)) (whole int64, err error) {
	var b [Size]byte
	var r Record
	for {
		_, err := io.ReadFull(from, b[:])
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return whole, nil
		}
		if err != nil {
			return whole, fmt.Errorf("read: %w", err)
		}
		if !r.decode(&b) {
			return whole, fmt.Errorf("what stands at byte %d is no record", whole)
		}
		if r.Kind < Start || r.Kind > Beat {
			return whole, fmt.Errorf("the record at byte %d is of kind %d", whole, r.Kind)
		}
		whole += Size
		f(&r)
	}
}

// ReadAll calls f with each record of all files of a directory.
func ReadAll(dir string, f func(*Record)) error {
	paths, err := Files(dir)
	if err != nil {
		return err
	}
	for _, path := range paths {
		if err := Read(path, f); err != nil {
			return err
		}
	}
	return nil
}

// Totals counts records.
type Totals struct{ Starts, OK, Failed int64 }

// Follower counts the records of a directory while they are written. Its methods are called one at a time.
type Follower struct {
	dir    string
	read   map[string]int64
	totals Totals
	// Each is called with each record once, but for beats, if it is set; it must not keep it.
	Each func(*Record)
}

// Follow begins to count what is in a directory.
func Follow(dir string) *Follower { return &Follower{dir: dir, read: map[string]int64{}} }

// Poll reads what came since the last call, and returns what there was in all.
func (f *Follower) Poll() (Totals, error) {
	paths, err := Files(f.dir)
	if err != nil {
		return f.totals, err
	}
	for _, path := range paths {
		if err := f.follow(path); err != nil {
			return f.totals, err
		}
	}
	return f.totals, nil
}

func (f *Follower) follow(path string) error {
	if info, err := os.Stat(path); err == nil && info.Size() < f.read[path]+Size {
		return nil // the file of a run that is over, as most are
	}
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open the journal: %w", err)
	}
	defer file.Close()
	at := f.read[path]
	if _, err := file.Seek(at, io.SeekStart); err != nil {
		return fmt.Errorf("journal %s: %w", filepath.Base(path), err)
	}
	whole, err := read(bufio.NewReaderSize(file, readBuffer), f.count)
	f.read[path] = at + whole
	if err != nil {
		return fmt.Errorf("journal %s, from byte %d: %w", filepath.Base(path), at, err)
	}
	return nil
}

func (f *Follower) count(r *Record) {
	switch r.Kind {
	case Start:
		f.totals.Starts++
	case OK:
		f.totals.OK++
	case Failed:
		f.totals.Failed++
	case GivenUp:
	case Beat:
		return
	}
	if f.Each != nil {
		f.Each(r)
	}
}
