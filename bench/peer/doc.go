// Package peer runs one of the compared systems as a producer or a worker, in a process of its own. [Serve] reads commands from its
// standard input, one JSON object a line, and answers with events on its standard output; node/child.js speaks the same.
package peer
