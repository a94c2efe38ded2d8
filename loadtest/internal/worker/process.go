package worker

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"time"
)

// statusEvery is how often a process tells its status.
const statusEvery = time.Second

// Status is what a process tells of itself, one JSON object per line.
type Status struct {
	// Goroutines is how many there are.
	Goroutines int
	// Heap is the memory in use by objects, in bytes.
	Heap uint64
}

// Process is the body of a worker process. Its first line of input is its Options as JSON, not an argument, for a URL may hold
// a password. It works until its input ends: that is how it is asked to stop, and it ends with whoever started it. Its
// statuses go to out, the library's log to log.
func Process(in io.Reader, out, log io.Writer) error {
	input := bufio.NewReader(in)
	line, err := input.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("read the options of the worker: %w", err)
	}
	var o Options
	if err := json.Unmarshal(line, &o); err != nil {
		return fmt.Errorf("read the options of the worker: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	// The goroutine ends with the input, at the latest with the process.
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, input)
	}()
	told := make(chan struct{})
	go func() {
		defer close(told)
		tell(ctx, out)
	}()
	err = Run(ctx, o, log)
	cancel()
	<-told
	return err
}

// tell writes statuses until ctx ends. A reader that is gone is told nothing more.
func tell(ctx context.Context, out io.Writer) {
	encoder := json.NewEncoder(out)
	for {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		if encoder.Encode(Status{Goroutines: runtime.NumGoroutine(), Heap: m.HeapInuse}) != nil || !sleep(ctx, statusEvery) {
			return
		}
	}
}
