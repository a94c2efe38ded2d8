package cli

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq/internal/rsmqrest"
	"github.com/xstreamq/xstreamq/rsmq"
)

const rsmqServeHelp = `Serve RSMQ queues over HTTP: the routes and bodies of rest-rsmq, and besides popping a message,
setting attributes, GET /health, and GET /openapi.json, which describes it all. The address it
listens on is printed to standard error; port 0 picks a free one.

Anyone who reaches the service can send, read and delete messages. So it listens on this machine
alone, and elsewhere only with --token-file, whose token every request then has to carry as
"Authorization: Bearer TOKEN"; only /health and /openapi.json are open. The token travels in the
clear: put TLS before the service where the network is not trusted. Without a token, requests that a
browser sends on behalf of another site are refused.

Errors of a queue are answered with 404, 409 or 400, or all with 500, as rest-rsmq does, with
--compat-status. A request has to arrive within 30s, and its headers within 5s.

It ends with SIGTERM or SIGINT, or after --timeout: it takes no more requests, those under way get
10s to end, and the exit code is 0. When some do not end in time, they are cut off and it is 1.`

const rsmqServeExample = `  xstreamq rsmq serve
  curl -s -d message=hello http://127.0.0.1:8101/messages/orders
  xstreamq rsmq serve --listen 0.0.0.0:8101 --token-file /run/secrets/token`

type rsmqServeOptions struct {
	*rsmqOptions
	listen    string
	tokenFile string
	compat    bool
	realtime  bool
	maxBody   int64
}

func newRSMQServe(shared *rsmqOptions) *cobra.Command {
	o := rsmqServeOptions{rsmqOptions: shared}
	cmd := &cobra.Command{
		Use:     "serve",
		Short:   "Serve the queues over HTTP, as rest-rsmq does",
		Long:    rsmqServeHelp,
		Example: rsmqServeExample,
		Args:    arguments(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.serve(cmd)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.listen, "listen", "127.0.0.1:8101", "the `HOST:PORT` to listen on; elsewhere than on this machine it needs --token-file")
	flags.StringVar(&o.tokenFile, "token-file", "", fmt.Sprintf("`FILE` that holds the token of the clients: one line of at least %d bytes", tokenLeast))
	flags.BoolVar(&o.compat, "compat-status", false, "answer every error of a queue with 500, as rest-rsmq does")
	flags.Int64Var(&o.maxBody, "max-body", 1<<20, "largest body of a request, in bytes")
	flags.BoolVar(&o.realtime, "realtime", false, "also publish the number of messages after each send, as the Node package does with its option realtime")
	return cmd
}

func (o *rsmqServeOptions) serve(cmd *cobra.Command) error {
	if err := o.noQueueFlag("the requests name the queues"); err != nil {
		return err
	}
	if o.maxBody < 1 {
		return usageError{errors.New("--max-body is not above 0")}
	}
	where, err := o.address()
	if err != nil {
		return err
	}
	token := ""
	if cmd.Flags().Changed("token-file") {
		if token, err = readToken(o.tokenFile); err != nil {
			return err
		}
	}
	return o.with(cmd, rsmq.Config{Realtime: o.realtime}, func(ctx context.Context, s rsmqSession) error {
		// What this service can do nothing without is told now, and not to each client.
		if _, err := s.ListQueues(ctx); err != nil {
			return err
		}
		listener, err := net.ListenTCP("tcp", where)
		if err != nil {
			return fmt.Errorf("--listen: %w", err)
		}
		handler := rsmqrest.New(s.Client, rsmqrest.Options{Token: token, CompatStatus: o.compat, MaxBody: o.maxBody})
		if token == "" {
			handler = sameSite(handler)
		}
		fmt.Fprintf(o.app.err, "listening on http://%s\n", listener.Addr())
		return serveHTTP(ctx, listener, handler, o.app.err, defaultLimits)
	})
}

// address is where to listen: without a token on this machine alone.
func (o *rsmqServeOptions) address() (*net.TCPAddr, error) {
	where, err := net.ResolveTCPAddr("tcp", o.listen)
	if err != nil {
		return nil, usageError{fmt.Errorf("--listen %s: %w", o.listen, err)}
	}
	if o.tokenFile == "" && !where.IP.IsLoopback() {
		return nil, usageError{fmt.Errorf("refusing to listen on %s without a token, since others than this machine reach it: "+
			"give a --token-file, or listen on 127.0.0.1", o.listen)}
	}
	return where, nil
}
