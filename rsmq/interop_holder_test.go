//go:build interop

package rsmq

import (
	"os"
	"testing"
)

// TestInteropHolder is no test but the process that TestInteropKill kills: it receives messages and prints a byte for each.
func TestInteropHolder(t *testing.T) {
	url := os.Getenv(holderEnv)
	if url == "" {
		return
	}
	c, err := Open(url, Config{})
	if err != nil {
		t.Fatal(err)
	}
	for {
		_, ok, err := c.ReceiveMessage(t.Context(), "q", ReceiveOptions{VisibilityTimeout: Seconds(1)})
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			os.Stdout.WriteString(".")
		}
	}
}
