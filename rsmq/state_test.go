package rsmq

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/rueidis"
)

// compareState compares all of Redis with what was recorded.
func (r *replay) compareState(where string, st vectorStep) {
	r.t.Helper()
	if string(st.State) != `"unchanged"` {
		r.state = map[string]any{}
		var keys map[string]struct {
			Type    string
			Fields  map[string]any
			Members []any
		}
		if err := json.Unmarshal([]byte(masked(string(st.State), r.ids)), &keys); err != nil {
			r.t.Fatal(err)
		}
		for key, v := range keys {
			r.state[key] = recorded(r.t, v.Type, v.Fields, v.Members)
		}
	}
	if diff := cmp.Diff(r.state, dump(r.t, r.redis)); diff != "" {
		r.t.Fatalf("%s: state (-Node +Go):\n%s", where, diff)
	}
}

// recorded brings a key of the file into the form of dump.
func recorded(t *testing.T, kind string, fields map[string]any, members []any) any {
	t.Helper()
	switch kind {
	case "hash":
		for name, v := range fields {
			if object, ok := v.(map[string]any); ok && object["$len"] != nil {
				object["$len"] = int(object["$len"].(float64))
			} else {
				fields[name] = expand(t, v, nil)
			}
		}
		return fields
	case "set":
		var names []string
		for _, m := range members {
			names = append(names, m.(string))
		}
		slices.Sort(names)
		return names
	}
	var scored []string
	for _, m := range members {
		object := m.(map[string]any)
		scored = append(scored, object["member"].(string)+" "+object["score"].(string))
	}
	return scored
}

// dump is everything that Redis holds.
func dump(t *testing.T, rc rueidis.Client) map[string]any {
	t.Helper()
	ctx := context.Background()
	keys, err := rc.Do(ctx, rc.B().Keys().Pattern("*").Build()).AsStrSlice()
	if err != nil {
		t.Fatal(err)
	}
	state := map[string]any{}
	for _, key := range keys {
		kind, err := rc.Do(ctx, rc.B().Type().Key(key).Build()).ToString()
		if err != nil {
			t.Fatal(err)
		}
		if ttl, err := rc.Do(ctx, rc.B().Ttl().Key(key).Build()).AsInt64(); err != nil || ttl != -1 {
			t.Errorf("key %s has a TTL of %d: %v", key, ttl, err)
		}
		switch kind {
		case "hash":
			state[key], err = dumpHash(ctx, rc, key)
		case "set":
			var names []string
			names, err = rc.Do(ctx, rc.B().Smembers().Key(key).Build()).AsStrSlice()
			slices.Sort(names)
			state[key] = names
		default:
			state[key], err = dumpZset(ctx, rc, key)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return state
}

func dumpHash(ctx context.Context, rc rueidis.Client, key string) (map[string]any, error) {
	stored, err := rc.Do(ctx, rc.B().Hgetall().Key(key).Build()).AsStrMap()
	fields := map[string]any{}
	for name, v := range stored {
		fields[name] = v
		if len(v) > 1000 {
			fields[name] = digest(v)
		}
	}
	return fields, err
}

func dumpZset(ctx context.Context, rc rueidis.Client, key string) ([]string, error) {
	members, err := rc.Do(ctx, rc.B().Zrange().Key(key).Min("0").Max("-1").Withscores().Build()).AsZScores()
	var scored []string
	for _, m := range members {
		scored = append(scored, m.Member+" "+decimal(int64(m.Score)))
	}
	return scored, err
}
