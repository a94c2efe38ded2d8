// Package redistest gives tests a real Redis.
//
// Most tests share one server per test binary and keep apart by key prefix:
//
//	func TestMain(m *testing.M) { redistest.Main(m) }
//
//	func TestSomething(t *testing.T) {
//		t.Parallel()
//		prefix := redistest.Prefix(t)
//		client := redistest.Client(t)
//		...
//	}
//
// The shared server is, in this order: XSTREAMQ_TEST_REDIS_URL; a redis-server or valkey-server on PATH, started on a
// free port; a container (see [StartContainer]). Where none of them can be had the test fails and says how to get one.
//
// A test that kills, pauses or reconfigures Redis starts one of its own with [Start], from the same binaries or, on
// Linux, in a container. A test that needs a bad network puts a [Proxy] in between. Benchmarks and tools without a
// testing.TB use [NewServer], [ListenProxy] and [Open].
package redistest
