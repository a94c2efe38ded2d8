package cli

import (
	"bytes"
	"context"
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
	files map[string][]byte // what was read already, by name
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

// address is the URL, which may hold credentials, and what it says. A wrong one is an error of the command line.
func (c *connection) address(ctx context.Context) (string, rueidis.ClientOption, error) {
	raw, from, err := c.rawURL(ctx)
	if err != nil {
		return "", rueidis.ClientOption{}, err
	}
	opts, err := redisurl.Parse(raw)
	if err != nil {
		return "", opts, usageError{fmt.Errorf("%s: %w", from, err)}
	}
	return raw, opts, nil
}

// rawURL is the URL as it is given, and by what.
func (c *connection) rawURL(ctx context.Context) (raw, from string, err error) {
	switch {
	case c.flags.Changed("url") && c.flags.Changed("url-file"):
		return "", "", usageError{errors.New("--url and --url-file say both where Redis is; give one of them")}
	case c.flags.Changed("url") && c.url == "":
		return "", "", usageError{errors.New("--url is empty")}
	case c.flags.Changed("url"):
		return c.url, "--url", nil
	case c.flags.Changed("url-file"):
		raw, err := c.readURL(ctx)
		return raw, "--url-file: " + c.urlFile, err
	}
	for _, variable := range []string{c.before, urlVariable} {
		if url := os.Getenv(variable); url != "" {
			return url, variable, nil
		}
	}
	return defaultURL, "", nil
}

// readURL returns the one line that the file holds. Its errors do not show it.
func (c *connection) readURL(ctx context.Context) (string, error) {
	content, err := c.read(ctx, c.urlFile, urlFileMost)
	if err != nil {
		err = fmt.Errorf("--url-file: %w", err)
		if errors.Is(err, errFileTooLarge) {
			return "", usageError{err}
		}
		return "", err
	}
	line := bytes.TrimSpace(content)
	switch {
	case len(line) == 0:
		return "", usageError{fmt.Errorf("--url-file: %s is empty", c.urlFile)}
	case bytes.ContainsAny(line, "\r\n"):
		return "", usageError{fmt.Errorf("--url-file: %s holds more than one line", c.urlFile)}
	}
	return string(line), nil
}

// options are those of the connection that the flags ask for. Its errors show no credentials.
func (c *connection) options(ctx context.Context) (rueidis.ClientOption, error) {
	_, opts, err := c.address(ctx)
	if err != nil {
		return opts, err
	}
	opts.DisableRetry = opts.DisableRetry || !c.retry
	if err := c.secure(ctx, &opts); err != nil {
		return opts, err
	}
	return opts, nil
}
