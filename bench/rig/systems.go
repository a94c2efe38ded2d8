package rig

import (
	"slices"
	"time"

	"github.com/xstreamq/xstreamq/bench/report"
)

// System is how one row of the comparison is run.
type System struct {
	report.System
	Node bool

	stored [][]string       // commands whose first numbers add up to what a producer has stored
	left   [][]string       // the same for what workers have taken and not ended; nil: as stored, since what is ended is deleted
	only   []report.Measure // nil: all
	batch  bool             // its producers are few, each storing many at a time
	speeds speeds
}

// speeds are messages per second on two cores, as far as known. They only set how many messages a phase has.
type speeds struct{ publish, drain, endToEnd float64 }

// batchCallers of a system that stores batches stand for the many callers of the others.
const batchCallers = 4

func (s System) has(m report.Measure) bool { return s.only == nil || slices.Contains(s.only, m) }

func (s System) callers(n int) int {
	if s.batch {
		return batchCallers
	}
	return n
}

func (s System) messages(m report.Measure, d time.Duration) int {
	var perSecond float64
	switch m {
	case report.Publish64, report.Publish256:
		perSecond = s.speeds.publish
	case report.EndToEnd:
		perSecond = s.speeds.endToEnd
	default:
		perSecond = s.speeds.drain
	}
	return max(1000, int(perSecond*d.Seconds()))
}

// stream returns a system whose messages are in a stream, which keeps what is ended.
func stream(key string, s System) System {
	s.stored = [][]string{{"XLEN", key}}
	s.left = [][]string{{"XPENDING", key, "g"}}
	return s
}

const ourStream = "{bench}"

// Systems are all rows but those of redis-benchmark.
func Systems() []System { return slices.Concat(ours(), peers(), ceilings()) }

func ours() []System {
	return []System{
		stream(ourStream, System{
			System: report.System{
				Name: "xstreamq", Title: "xstreamq", Kind: report.Ours,
				Settings: "Concurrency 64, every other option at its default: leases, retries, dead letters and compaction are on",
			},
			speeds: speeds{200_000, 200_000, 120_000},
		}),
		stream(ourStream, System{
			System: report.System{
				Name: "xstreamq-ahead", Title: "xstreamq, Prefetch 512", Kind: report.Ours,
				Settings: "as above, and Prefetch 512: longer reads for a handler that takes no time",
			},
			only: []report.Measure{report.Drain1, report.Drain2}, speeds: speeds{200_000, 200_000, 120_000},
		}),
		stream(ourStream, System{
			System: report.System{
				Name: "xstreamq-batch", Title: "xstreamq, batch publish", Kind: report.Ours,
				Settings: "PublishBatch of 100 by 4 callers in place of 64; the worker as in the first row",
			},
			only: []report.Measure{report.Publish64, report.EndToEnd}, batch: true, speeds: speeds{350_000, 200_000, 120_000},
		}),
	}
}

func peers() []System {
	return []System{
		{
			System: report.System{
				Name: "asynq", Title: "asynq", Kind: report.Peer,
				Settings: "Concurrency 64, TaskCheckInterval 5ms (default 1s), LogLevel fatal; PoolSize: a connection per caller, 72 in a worker",
			},
			stored: [][]string{{"LLEN", "asynq:{default}:pending"}, {"LLEN", "asynq:{default}:active"}},
			speeds: speeds{50_000, 8_000, 6_500},
		},
		stream("bench", System{
			System: report.System{
				Name: "watermill", Title: "watermill-redisstream", Kind: report.Peer,
				Settings: "16 Subscribers of one consumer group in a worker, each of which takes one message at a time; " +
					"DisableIndefiniteInitialBlock; PoolSize: a connection per caller, 48 in a worker",
			},
			speeds: speeds{60_000, 28_000, 22_000},
		}),
		{
			System: report.System{
				Name: "bullmq", Title: "BullMQ", Kind: report.Peer,
				Settings: "Queue.add by 64 or 256 promises; Worker concurrency 100, removeOnComplete, removeOnFail",
			},
			Node: true, stored: [][]string{{"LLEN", "bull:bench:wait"}, {"LLEN", "bull:bench:active"}},
			speeds: speeds{18_000, 10_000, 7_000},
		},
		{
			System: report.System{
				Name: "rsmq", Title: "rsmq", Kind: report.Peer,
				Settings: "32 loops of receiveMessage and deleteMessage, which sleep for 20ms when the queue is empty",
			},
			Node: true, stored: [][]string{{"ZCARD", "rsmq:bench"}}, speeds: speeds{24_000, 17_000, 12_000},
		},
		stream(ourStream, System{
			System: report.System{
				Name: "ioredis", Title: "Node stand-in", Kind: report.StandIn,
				Settings: "a minimal consumer on ioredis: XADD with enableAutoPipelining; XREADGROUP COUNT 100 on a connection of its own; XACK per message, pipelined; " +
					"no envelope, no retries, no recovery",
			},
			Node: true, speeds: speeds{75_000, 48_000, 38_000},
		}),
	}
}

func ceilings() []System {
	return []System{stream(ourStream, System{
		System: report.System{
			Name: "bare", Title: "bare rueidis loop", Kind: report.Ceiling,
			Settings: "XADD; XREADGROUP COUNT 500 and one XACK per read in one goroutine; connection settings of xstreamq.Open; no promises",
		},
		speeds: speeds{200_000, 260_000, 150_000},
	})}
}
