package chaos

import (
	"context"

	"github.com/xstreamq/xstreamq/loadtest/internal/oracle"
	"github.com/xstreamq/xstreamq/loadtest/internal/report"
	"github.com/xstreamq/xstreamq/loadtest/internal/resp"
)

// gauge asks the server how it is. It keeps one connection, which it makes anew after a failure. Its methods are called one at a
// time.
type gauge struct {
	server resp.Options
	keys   oracle.Keys
	groups int
	conn   *resp.Conn
}

// depth returns where the messages are.
func (g *gauge) depth(ctx context.Context) (oracle.Depth, error) {
	if g.conn == nil {
		conn, err := resp.Dial(ctx, g.server)
		if err != nil {
			return oracle.Depth{}, err
		}
		g.conn = conn
	}
	depth, err := oracle.ReadDepth(g.conn, g.keys, g.groups)
	if err != nil {
		g.close()
	}
	return depth, err
}

// state returns what INFO says, besides.
func (g *gauge) state(ctx context.Context) (oracle.Depth, map[string]string, error) {
	depth, err := g.depth(ctx)
	if err != nil {
		return depth, nil, err
	}
	info, err := g.conn.Do("INFO")
	if err != nil {
		g.close()
		return depth, nil, err
	}
	return depth, report.InfoFields(info.Text), nil
}

func (g *gauge) close() {
	if g.conn != nil {
		_ = g.conn.Close() // nothing is under way on it
		g.conn = nil
	}
}
