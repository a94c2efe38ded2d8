package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/redis/rueidis"
	"github.com/spf13/pflag"

	"github.com/xstreamq/xstreamq/internal/redisurl"
)

const (
	urlVariable    = "XSTREAMQ_URL"
	prefixVariable = "XSTREAMQ_PREFIX"
	defaultURL     = "redis://localhost:6379"
)

// connection is where Redis is, as the command line says.
type connection struct {
	url, urlFile      string
	caCert, cert, key string
	prefix            string
	timeout           time.Duration
	// retry lets the client repeat reads that failed, for as long as their time allows. Without it, what is wrong shows at once.
	retry bool
	// before, if set, is a variable of the environment that comes before urlVariable.
	before string

	flags *pflag.FlagSet
}

func (c *connection) addFlags(flags *pflag.FlagSet) {
	c.flags = flags
	flags.StringVar(&c.url, "url", "", "Redis, as `URL`: redis://[user:password@]host:port[/db], rediss:// or unix:// (default: "+urlVariable+", else "+
		defaultURL+"). Others on this machine can see the command line, and a password in it: then use --url-file")
	flags.StringVar(&c.urlFile, "url-file", "", "`FILE` that holds the URL, so that its password shows in no process list")
	flags.StringVar(&c.caCert, "cacert", "", "PEM `FILE` of the authorities to trust; turns TLS on")
	flags.StringVar(&c.cert, "cert", "", "PEM `FILE` of the client's certificate, which goes with --key; turns TLS on")
	flags.StringVar(&c.key, "key", "", "PEM `FILE` of its key")
	flags.StringVar(&c.prefix, "prefix", os.Getenv(prefixVariable), "what the keys of the queues begin with: Config.KeyPrefix (default: "+prefixVariable+")")
	flags.Lookup("prefix").DefValue = "" // what this machine's environment says is not for --help
	flags.DurationVar(&c.timeout, "timeout", 0, "longest time for the whole command (default: 30s for commands that only look, else none)")
}

// given reports whether the command line itself says where Redis is.
func (c *connection) given() bool { return c.flags.Changed("url") || c.flags.Changed("url-file") }

// address is the URL, which may hold credentials.
func (c *connection) address() (string, error) {
	switch {
	case c.flags.Changed("url") && c.flags.Changed("url-file"):
		return "", usageError{errors.New("--url and --url-file say both where Redis is; give one of them")}
	case c.flags.Changed("url") && c.url == "":
		return "", usageError{errors.New("--url is empty")}
	case c.flags.Changed("url"):
		return c.url, nil
	case c.flags.Changed("url-file"):
		return readURL(c.urlFile)
	}
	for _, variable := range []string{c.before, urlVariable} {
		if url := os.Getenv(variable); url != "" {
			return url, nil
		}
	}
	return defaultURL, nil
}

// readURL returns the one line that a file holds. Its errors do not show it.
func readURL(name string) (string, error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("--url-file: %w", err)
	}
	line := bytes.TrimSpace(content)
	switch {
	case len(line) == 0:
		return "", fmt.Errorf("--url-file: %s is empty", name)
	case bytes.ContainsAny(line, "\r\n"):
		return "", fmt.Errorf("--url-file: %s holds more than one line", name)
	}
	return string(line), nil
}

// options are those of the connection that the flags ask for. Its errors show no credentials.
func (c *connection) options() (rueidis.ClientOption, error) {
	raw, err := c.address()
	if err != nil {
		return rueidis.ClientOption{}, err
	}
	opts, err := redisurl.Parse(raw)
	if err != nil {
		return opts, err
	}
	opts.DisableRetry = opts.DisableRetry || !c.retry
	if err := c.secure(&opts); err != nil {
		return opts, err
	}
	return opts, nil
}
