package demo

import (
	"fmt"

	"github.com/alicebob/miniredis/v2"
)

// embedded is a small Redis inside this process.
type embedded struct{ *miniredis.Miniredis }

func startEmbedded() (embedded, error) {
	m := miniredis.NewMiniRedis()
	// Without it keys never expire, and so neither do the sweepers' locks.
	m.ClockTTL(true)
	if err := m.StartAddr("127.0.0.1:0"); err != nil {
		return embedded{}, fmt.Errorf("start the embedded server: %w", err)
	}
	return embedded{m}, nil
}

func (e embedded) url() string { return "redis://" + e.Addr() }
