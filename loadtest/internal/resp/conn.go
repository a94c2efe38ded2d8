package resp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// DefaultTimeout is how long a connection waits for the server, each time.
const DefaultTimeout = 5 * time.Second

// Options say where a server is and how long to wait for it.
type Options struct {
	// Addr is the server's host:port.
	Addr string
	// User and Password, if there are any.
	User, Password string
	// DB is the number of the database.
	DB int
	// Timeout of each exchange. 0 or less is DefaultTimeout.
	Timeout time.Duration
}

// ParseURL reads redis://[user:password@]host:port[/db]. Its errors do not show the URL, which may hold a password.
func ParseURL(raw string) (Options, error) {
	const form = "the form is redis://[user:password@]host:port[/db]"
	u, err := url.Parse(raw)
	if err != nil {
		return Options{}, errors.New("the Redis URL is malformed; " + form)
	}
	if u.Scheme != "redis" || u.Hostname() == "" || u.RawQuery != "" {
		return Options{}, errors.New("only plain TCP is spoken here; " + form)
	}
	o := Options{Addr: u.Host, User: u.User.Username()}
	if u.Port() == "" {
		o.Addr = net.JoinHostPort(u.Hostname(), "6379")
	}
	o.Password, _ = u.User.Password()
	if db := strings.Trim(u.Path, "/"); db != "" {
		if o.DB, err = strconv.Atoi(db); err != nil || o.DB < 0 {
			return Options{}, errors.New("the database of the Redis URL is no number; " + form)
		}
	}
	return o, nil
}

// Conn is a connection. Its methods are called one at a time. After an error that is no ServerError it is of no use, and what
// became of commands without a reply is not known.
type Conn struct {
	conn    net.Conn
	timeout time.Duration
	in      *bufio.Reader
	out     []byte
	pending int
}

// Dial connects, authenticates and selects the database. It waits Options.Timeout at most, and not beyond ctx.
func Dial(ctx context.Context, o Options) (*Conn, error) {
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	dialer := net.Dialer{Timeout: o.Timeout}
	conn, err := dialer.DialContext(ctx, "tcp", o.Addr)
	if err != nil {
		return nil, fmt.Errorf("resp: connect: %w", err)
	}
	c := &Conn{conn: conn, timeout: o.Timeout, in: bufio.NewReaderSize(conn, maxLine)}
	if err := c.greet(o); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Conn) greet(o Options) error {
	var auth []string
	switch {
	case o.User != "":
		auth = []string{"AUTH", o.User, o.Password}
	case o.Password != "":
		auth = []string{"AUTH", o.Password}
	}
	if auth != nil {
		if _, err := c.Do(auth...); err != nil {
			return fmt.Errorf("resp: authenticate at %s: %w", o.Addr, err)
		}
	}
	if o.DB == 0 {
		return nil
	}
	if _, err := c.Do("SELECT", strconv.Itoa(o.DB)); err != nil {
		return fmt.Errorf("resp: select database %d at %s: %w", o.DB, o.Addr, err)
	}
	return nil
}

// Append adds a command to those that the next Flush sends. It keeps none of the arguments.
func (c *Conn) Append(args ...[]byte) {
	c.out = appendCommand(c.out, args)
	c.pending++
}

// Flush sends what was appended. With an error some commands may have reached the server, or all.
func (c *Conn) Flush() error {
	if err := c.conn.SetDeadline(time.Now().Add(c.timeout)); err != nil {
		return fmt.Errorf("resp: set the deadline: %w", err)
	}
	_, err := c.conn.Write(c.out)
	c.out = c.out[:0]
	if err != nil {
		return fmt.Errorf("resp: send: %w", err)
	}
	return nil
}

// Pending is how many commands have no reply yet.
func (c *Conn) Pending() int { return c.pending }

// Receive reads the next reply. An error reply is a value, see [Value.Err].
func (c *Conn) Receive() (Value, error) {
	v, err := ReadValue(c.in)
	if err != nil {
		return Value{}, err
	}
	c.pending--
	return v, nil
}

// Do sends a command and returns its reply. An error reply is a ServerError.
func (c *Conn) Do(args ...string) (Value, error) {
	words := make([][]byte, len(args))
	for i, arg := range args {
		words[i] = []byte(arg)
	}
	c.Append(words...)
	if err := c.Flush(); err != nil {
		return Value{}, err
	}
	v, err := c.Receive()
	if err != nil {
		return Value{}, err
	}
	return v, v.Err()
}

// Close closes the connection.
func (c *Conn) Close() error { return c.conn.Close() }
