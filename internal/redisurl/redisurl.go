// Package redisurl reads Redis URLs without giving away what is in them.
package redisurl

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/redis/rueidis"
)

// Parse reads a URL as rueidis.ParseURL does: redis://, rediss://, unix:// and its query parameters. Its errors never quote the
// URL, nor a part of it: what is wrong is often that a password is not encoded, and then any part may be of the password.
func Parse(raw string) (rueidis.ClientOption, error) {
	opts, err := rueidis.ParseURL(raw)
	var what string
	form := "redis://[user:password@]host:port[/db]"
	var malformed *url.Error
	switch {
	case errors.As(err, &malformed):
		what = "it is malformed; percent-encode what is special in user and password"
	case err != nil:
		// redis: what is wrong: the value
		_, what, _ = strings.Cut(err.Error(), ": ")
		what, _, _ = strings.Cut(what, ":")
	default:
		what, form = mistaken(raw, form)
	}
	if what == "" {
		return opts, nil
	}
	return rueidis.ClientOption{}, fmt.Errorf("the Redis URL cannot be used: %s; the form is %s", what, form)
}

// mistaken says what is wrong with a URL that would be taken for another than is meant: one that ends its host too early, so that
// part of a password passes for the host or the path.
func mistaken(raw, form string) (what, rightForm string) {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Fragment != "" || strings.Contains(u.RawQuery, "@"):
		return `percent-encode "#", "?" and "@" in user and password`, form
	case u.Scheme == "unix" && (u.Host != "" || u.Path == ""):
		return "it names no path; percent-encode what is special in user and password", "unix://[user:password@]/path/to/socket[?db=n]"
	}
	for _, addr := range u.Query()["addr"] {
		if _, _, err := net.SplitHostPort(addr); err != nil { // rueidis would take the first host for it
			return "addr needs a port", "redis://host:port?addr=host:port&addr=host:port"
		}
	}
	return "", form
}
