package peer

// Operations of a [Command].
const (
	// Publish stores Messages as fast as Callers can.
	Publish = "publish"
	// Pace stores Messages at Rate.
	Pace = "pace"
	// Work begins to handle messages, and tells how many it has handled until Stop.
	Work = "work"
	// Tell asks a worker for what it has done.
	Tell = "tell"
)

// Command is one line of a child's standard input.
type Command struct {
	Op       string  `json:"op"`
	Messages int     `json:"messages,omitempty"` // to publish; of Work: the highest sequence number whose latency is kept
	Callers  int     `json:"callers,omitempty"`
	Rate     float64 `json:"rate,omitempty"` // messages per second
}

// Kinds of an [Event].
const (
	Ready     = "ready"     // the child is connected, or works
	Progress  = "progress"  // Handled has changed
	Published = "published" // a Publish or Pace has ended
	Worked    = "worked"    // the answer to Tell
	Failed    = "failed"
)

// Event is one line of a child's standard output. Times are nanoseconds since 1970.
type Event struct {
	Kind    string `json:"kind"`
	Handled int64  `json:"handled,omitempty"`
	First   int64  `json:"first,omitempty"` // of Published: the first call began; of Worked: the first handler began
	Last    int64  `json:"last,omitempty"`  // of Published: the last call ended; of Worked: the last handler ended
	// Sum of the sequence numbers of the handled messages.
	Sum int64 `json:"sum,omitempty"`
	// Latencies by sequence number, in microseconds from the time in the body to the start of the handler; -1: not handled.
	Latencies []int32 `json:"latencies,omitempty"`
	Error     string  `json:"error,omitempty"`
}
