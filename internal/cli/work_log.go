package cli

import (
	"io"
	"log/slog"
	"strings"
)

// logHandler logs on the standard error, as JSON with --json, and safe for a terminal.
func (a *app) logHandler() slog.Handler {
	if a.json {
		return slog.NewJSONHandler(logLines{a.err, safeJSON}, nil)
	}
	return slog.NewTextHandler(logLines{a.err, func(line []byte) []byte {
		return []byte(printable(strings.TrimSuffix(string(line), "\n")) + "\n")
	}}, nil)
}

// logLines makes lines safe. slog writes each at once.
type logLines struct {
	to   io.Writer
	safe func([]byte) []byte
}

// Write implements io.Writer.
func (l logLines) Write(line []byte) (int, error) {
	if _, err := l.to.Write(l.safe(line)); err != nil {
		return 0, err
	}
	return len(line), nil
}
