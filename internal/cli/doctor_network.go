package cli

import (
	"fmt"
	"net"
	"strings"
	"time"
)

// skewMost is how far two clocks may be apart before anybody notices.
const skewMost = time.Second

// checkClock: due times and leases go by the clock of Redis; WithDeliverAt and the ages that people see do not.
func checkClock(s *serverState) []finding {
	const check = "clock"
	if s.skew == 0 {
		return nil
	}
	off, ahead := s.skew, "ahead of"
	if off < 0 {
		off, ahead = -off, "behind"
	}
	unsure := s.roundTrip / 2
	seen := fmt.Sprintf("that of Redis is %s %s this machine's, give or take %s", milliseconds(off), ahead, milliseconds(unsure))
	if off-unsure > skewMost {
		return []finding{warning(check, seen, "set both by NTP; what WithDeliverAt says is off by that much, and so are ages shown here")}
	}
	return []finding{ok(check, seen)}
}

// Round trips of a server in the same place take less.
const (
	roundTripNear = 10 * time.Millisecond
	roundTripMost = 100 * time.Millisecond
)

func checkRoundTrip(s *serverState) []finding {
	const check, do = "round trip", "run workers near Redis; each batch of reads and acknowledgements waits for one"
	seen := fmt.Sprintf("%s, the best of %d", milliseconds(s.roundTrip), roundTrips)
	switch {
	case s.roundTrip > roundTripMost:
		return []finding{warning(check, seen, do)}
	case s.roundTrip > roundTripNear:
		return []finding{note(check, seen, do)}
	}
	return []finding{ok(check, seen)}
}

// milliseconds is a short time for people.
func milliseconds(d time.Duration) string {
	if d >= time.Second {
		return short(d)
	}
	return fmt.Sprintf("%.2fms", float64(d.Microseconds())/1000)
}

// checkAccess: a server that anybody may use, and that listens to more than its own machine.
func checkAccess(s *serverState) []finding {
	const check = "access"
	bind, told := s.settings["bind"]
	if !s.anybody || !told || s.settings["protected-mode"] != "no" || loopbackOnly(bind) {
		return nil
	}
	return []finding{warning(check, "the default user needs no password and protected-mode is off: whoever reaches the port may do everything",
		"give the default user a password, or ACL SETUSER default off")}
}

// loopbackOnly reports whether a server that is bound to these addresses is out of reach of other machines.
func loopbackOnly(bind string) bool {
	for address := range strings.FieldsSeq(bind) {
		ip := net.ParseIP(strings.TrimPrefix(address, "-"))
		if ip == nil || !ip.IsLoopback() {
			return false
		}
	}
	return bind != ""
}

// checkDenied: what could not be asked is no failure of the server's.
func checkDenied(s *serverState) []finding {
	const check = "permissions"
	var found []finding
	if len(s.denied) > 0 {
		rules := strings.Join(s.denied, " ")
		found = append(found, note(check, "this user may not ask for everything, so something may be missing above", "allow it "+rules))
	}
	if len(s.unknown) > 0 {
		found = append(found, note(check, "this server does not know "+strings.Join(s.unknown, ", ")+", so something may be missing above", ""))
	}
	return found
}

// checkWrites: refused is what a write that changes nothing was answered.
func checkWrites(refused string) finding {
	const check = "write"
	code, _, _ := strings.Cut(refused, " ")
	switch code {
	case "":
		return ok(check, "accepted")
	case "READONLY":
		return problem(check, "refused: "+refused, "connect to the master")
	case "OOM":
		return problem(check, "refused: "+refused, "free memory or raise maxmemory")
	case "MISCONF":
		return problem(check, "refused: "+refused, "look at the disk of Redis")
	case "NOREPLICAS":
		return problem(check, "refused: "+refused, "bring back replicas, or lower min-replicas-to-write")
	case "NOPERM":
		return note(check, "this user may not write: "+refused, "allow it +xadd ~xstreamq:health, with the prefix of the keys in front, to have this looked at")
	}
	return problem(check, "refused: "+refused, "")
}
