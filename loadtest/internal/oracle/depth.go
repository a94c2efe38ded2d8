package oracle

import (
	"fmt"

	"github.com/xstreamq/xstreamq/loadtest/internal/message"
	"github.com/xstreamq/xstreamq/loadtest/internal/resp"
)

// Depth counts what there is of all groups of a queue, at one moment.
type Depth struct {
	// Undelivered is what no worker has read yet; where the server cannot tell, it is 1 for each group that is behind.
	Undelivered int64
	// Pending is held by workers, from the queue or from the retry streams.
	Pending int64
	// Retry is on the retry streams and not held, Delayed waits out its backoff.
	Retry, Delayed int64
	// Dead are dead letters.
	Dead int64
	// Consumers are those of all groups, on both of their streams.
	Consumers int64
	// Length is that of the queue's stream, finished entries included.
	Length int64
}

// Backlog is what is not done yet.
func (d Depth) Backlog() int64 { return d.Undelivered + d.Pending + d.Retry + d.Delayed }

// ReadDepth asks in one transaction, so that nothing on its way from one place to another is missed. A group that does not exist
// is behind.
func ReadDepth(conn *resp.Conn, keys Keys, groups int) (Depth, error) {
	var d Depth
	commands := [][]string{{"MULTI"}, {"EXISTS", keys.stream()}, {"XLEN", keys.stream()}}
	for g := range groups {
		commands = append(commands, []string{"XLEN", keys.retry(g)}, []string{"ZCARD", keys.delayed(g)}, []string{"XLEN", keys.dead(g)},
			[]string{"XINFO", "GROUPS", keys.retry(g)})
	}
	commands = append(commands, []string{"XINFO", "GROUPS", keys.stream()}, []string{"XINFO", "STREAM", keys.stream()}, []string{"EXEC"})
	replies, err := pipeline(conn, commands)
	if err != nil {
		return d, err
	}
	exec := replies[len(replies)-1]
	if exec.Kind != resp.Array || len(exec.Items) != len(commands)-2 {
		return d, fmt.Errorf("read the depth of %s: %w", keys.stream(), unexpected(exec))
	}
	items := exec.Items
	if items[0].Int == 0 {
		return d, nil // nothing was published
	}
	d.Length = items[1].Int
	for g := range groups {
		mine := items[2+4*g:]
		again := groupOf(mine[3], message.Group(g)+"-retry")
		d.Retry += mine[0].Int - again["pending"].Int
		d.Delayed += mine[1].Int
		d.Dead += mine[2].Int
		d.Pending += again["pending"].Int
		d.Consumers += again["consumers"].Int
		fresh := groupOf(items[len(items)-2], message.Group(g))
		d.Pending += fresh["pending"].Int
		d.Consumers += fresh["consumers"].Int
		d.Undelivered += behind(fresh, flat(items[len(items)-1]))
	}
	return d, nil
}

// behind is how many entries a group has not read.
func behind(group, stream map[string]resp.Value) int64 {
	switch {
	case group == nil:
		return stream["length"].Int
	case group["last-delivered-id"].Text == stream["last-generated-id"].Text:
		return 0
	}
	return max(1, group["lag"].Int) // a lag of null is 0 here
}

// groupOf finds a group in the reply to XINFO GROUPS; nil when it is not there.
func groupOf(v resp.Value, name string) map[string]resp.Value {
	for _, item := range v.Items {
		if g := flat(item); g["name"].Text == name {
			return g
		}
	}
	return nil
}

// flat reads an array of names and values; the first of one name counts.
func flat(v resp.Value) map[string]resp.Value {
	m := make(map[string]resp.Value, len(v.Items)/2)
	for i := 0; i+1 < len(v.Items); i += 2 {
		name := v.Items[i].Text
		if _, ok := m[name]; !ok {
			m[name] = v.Items[i+1]
		}
	}
	return m
}

// pipeline sends commands together and returns their replies, errors of the server among them.
func pipeline(conn *resp.Conn, commands [][]string) ([]resp.Value, error) {
	for _, command := range commands {
		words := make([][]byte, len(command))
		for i, w := range command {
			words[i] = []byte(w)
		}
		conn.Append(words...)
	}
	if err := conn.Flush(); err != nil {
		return nil, err
	}
	replies := make([]resp.Value, len(commands))
	for i := range replies {
		var err error
		if replies[i], err = conn.Receive(); err != nil {
			return nil, err
		}
	}
	return replies, nil
}

func unexpected(v resp.Value) error {
	if err := v.Err(); err != nil {
		return err
	}
	return fmt.Errorf("%w: a reply of kind %d", resp.ErrProtocol, v.Kind)
}
