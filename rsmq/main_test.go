package rsmq

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

func TestMain(m *testing.M) {
	// A cluster client of rueidis closes connections that it needs no more 5s later, closed itself or not.
	redistest.Main(m, goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"))
}
