package redistest

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"time"
)

// Ports are taken below the range from which systems serve outgoing connections, so that no client grabs the port of
// a server that is down for a moment. The bus port of a cluster node is 10,000 higher.
const (
	minPort = 10_000
	maxPort = 22_000
)

// freePort returns a port that nobody listens on now. Another process may still be faster: who uses it tries again.
func freePort() (int, error) {
	var lastErr error
	for range 100 {
		port := minPort + rand.IntN(maxPort-minPort)
		listener, err := net.Listen("tcp", loopback(port))
		if err != nil {
			lastErr = err
			continue
		}
		return port, listener.Close()
	}
	return 0, fmt.Errorf("find a free port between %d and %d: %w", minPort, maxPort, lastErr)
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// ready reports whether the server at addr has loaded its data and takes commands, and which process it is: another
// server may have taken the port. pid is 0 where the server wants a password first.
func ready(addr string) (pid int, ok bool) {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return 0, false
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return 0, false
	}
	if _, err := io.WriteString(conn, "PING\r\nINFO server\r\n"); err != nil {
		return 0, false
	}
	replies := bufio.NewReader(conn)
	pong, err := replies.ReadString('\n')
	if err != nil || strings.HasPrefix(pong, "-LOADING") {
		return 0, false
	}
	return processID(replies), true
}

// processID reads the reply to INFO up to the line process_id.
func processID(info *bufio.Reader) int {
	for {
		line, err := info.ReadString('\n')
		if err != nil || strings.HasPrefix(line, "-") {
			return 0
		}
		if id, found := strings.CutPrefix(strings.TrimSpace(line), "process_id:"); found {
			pid, _ := strconv.Atoi(id) // 0, unknown, if it is no number
			return pid
		}
	}
}
