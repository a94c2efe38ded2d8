package cli

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// serverState is what a Redis says of itself. What its user may not ask is empty, and named in denied.
type serverState struct {
	info     map[string]string // of INFO, without the sections
	settings map[string]string // of CONFIG GET
	role     string            // master, slave or sentinel
	anybody  bool              // the default user needs no password
	denied   []string          // the ACL rules that are missing
	unknown  []string          // commands that this server does not have

	now       time.Time     // its clock, when roundTrip was measured
	roundTrip time.Duration // the shortest of some
	skew      time.Duration // how far its clock is ahead of this machine's, give or take half the round trip
}

// settingsAsked are those that no section of INFO tells.
var settingsAsked = []string{
	"appendfsync", "stop-writes-on-bgsave-error", "save", "protected-mode", "bind", "maxmemory", "maxmemory-policy", "appendonly",
}

// roundTrips is how often the clock is asked; the shortest answer is the most exact.
const roundTrips = 5

// askServer asks Redis about itself. An error is one of the connection.
func askServer(ctx context.Context, rc rueidis.Client) (*serverState, error) {
	s := &serverState{settings: map[string]string{}}
	if err := s.askRole(ctx, rc); err != nil {
		return nil, err
	}
	if err := s.askClock(ctx, rc); err != nil {
		return nil, err
	}
	info, err := rc.Do(ctx, rc.B().Info().Build()).ToString()
	if err := s.refused("info", err); err != nil {
		return nil, err
	}
	s.info = infoFields(info)
	for _, name := range settingsAsked {
		found, err := rc.Do(ctx, rc.B().ConfigGet().Parameter(name).Build()).AsStrMap()
		if err := s.refused("config|get", err); err != nil {
			return nil, err
		}
		if err != nil {
			break
		}
		s.settings[name] = found[name]
	}
	return s, s.askDefaultUser(ctx, rc)
}

func (s *serverState) askRole(ctx context.Context, rc rueidis.Client) error {
	role, err := rc.Do(ctx, rc.B().Role().Build()).ToArray()
	if err == nil && len(role) > 0 {
		s.role, err = role[0].ToString()
	}
	return s.refused("role", err)
}

func (s *serverState) askClock(ctx context.Context, rc rueidis.Client) error {
	for range roundTrips {
		began := time.Now()
		parts, err := rc.Do(ctx, rc.B().Time().Build()).AsStrSlice()
		took := time.Since(began)
		if err := s.refused("time", err); err != nil {
			return err
		}
		if err == nil && (s.now.IsZero() || took < s.roundTrip) {
			s.now = unixTime(parts)
			s.skew = s.now.Sub(began.Add(took / 2))
		}
		if s.roundTrip == 0 || took < s.roundTrip {
			s.roundTrip = took
		}
	}
	if s.now.IsZero() {
		s.now = time.Now()
	}
	return nil
}

func (s *serverState) askDefaultUser(ctx context.Context, rc rueidis.Client) error {
	user, err := rc.Do(ctx, rc.B().AclGetuser().Username("default").Build()).AsMap()
	if err == nil {
		found := user["flags"]
		flags, _ := found.AsStrSlice()
		s.anybody = slices.Contains(flags, "on") && slices.Contains(flags, "nopass")
	}
	return s.refused("acl|getuser", err)
}

// refused takes note of a command that the user may not run, or that the server does not have. All else that went wrong it
// returns: also answers like LOADING, which are about the server and not about the command.
func (s *serverState) refused(rule string, err error) error {
	var re *rueidis.RedisError
	if err == nil || !errors.As(err, &re) {
		return err
	}
	code, _, _ := strings.Cut(re.Error(), " ")
	switch {
	case code == "NOPERM":
		s.denied = appendNew(s.denied, "+"+rule)
	case code == strings.ToUpper(code):
		return err
	default: // it has no code of its own
		s.unknown = appendNew(s.unknown, strings.ToUpper(strings.ReplaceAll(rule, "|", " ")))
	}
	return nil
}

func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// infoFields reads the lines of INFO.
func infoFields(text string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

// number is a field of INFO or a setting; -1 when it is not there.
func (s *serverState) number(name string) int64 {
	value, ok := s.info[name]
	if !ok {
		value = s.settings[name]
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// unixTime reads an answer to TIME; zero if it is none.
func unixTime(parts []string) time.Time {
	if len(parts) != 2 {
		return time.Time{}
	}
	seconds, err1 := strconv.ParseInt(parts[0], 10, 64)
	micros, err2 := strconv.ParseInt(parts[1], 10, 64)
	if err1 != nil || err2 != nil {
		return time.Time{}
	}
	return time.Unix(seconds, micros*int64(time.Microsecond))
}

// roleName is the role as people call it; empty: not known.
func (s *serverState) roleName() string {
	if s.role == "slave" {
		return "replica"
	}
	return s.role
}
