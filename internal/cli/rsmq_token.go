package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// Bounds of a token, in bytes.
const (
	tokenLeast = 16
	tokenMost  = 4096
)

// readToken returns the one line that a file holds. Its errors do not show it.
func readToken(name string) (string, error) {
	if name == "" {
		return "", usageError{errors.New("--token-file is empty")}
	}
	file, err := os.Open(name)
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, tokenMost+1))
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	token := bytes.TrimSpace(content)
	switch {
	case len(content) > tokenMost:
		return "", fmt.Errorf("--token-file: %s holds more than %d bytes", name, tokenMost)
	case len(token) < tokenLeast:
		return "", fmt.Errorf("--token-file: the token in %s has less than %d bytes, which could be guessed; make one with: openssl rand -hex 32", name, tokenLeast)
	case bytes.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", fmt.Errorf("--token-file: %s holds something else than one line of printable ASCII without spaces", name)
	}
	return string(token), nil
}
