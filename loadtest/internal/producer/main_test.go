package producer

import (
	"testing"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }
