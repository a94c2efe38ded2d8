package redistest

import (
	"bytes"
	"os"
)

// Logged reports whether the server has printed the text, in any of its runs.
func (s *Server) Logged(text string) bool {
	content, err := os.ReadFile(s.logPath())
	return err == nil && bytes.Contains(content, []byte(text))
}
