package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// bodySource returns what reads the body where there is only one; nil where every line of the standard input is one.
func (a *app) bodySource(cmd *cobra.Command, args []string, o publishOptions) (func(context.Context) ([]byte, error), error) {
	fromFile := cmd.Flags().Changed("file")
	switch {
	case len(args) == 2 && fromFile:
		return nil, usageError{errors.New("BODY and --file are both given")}
	case len(args) == 2:
		return func(context.Context) ([]byte, error) { return []byte(args[1]), nil }, nil
	case (!fromFile || o.file == "-") && inputClosed(a.in):
		return nil, errors.New("the standard input is closed")
	case fromFile:
		return func(ctx context.Context) ([]byte, error) { return a.wholeFile(ctx, o.file, o.maxBody) }, nil
	case isTerminal(a.in):
		return nil, usageError{errors.New("no message: give the body as an argument or with --file, or pipe messages in, one per line")}
	}
	return nil, nil
}

// wholeFile reads a body until ctx ends: a pipe may have no end, and not even a beginning. What is complete too late does not count.
func (a *app) wholeFile(ctx context.Context, name string, most int) ([]byte, error) {
	var body []byte
	var err error
	read := make(chan bool)
	go func() {
		body, err = a.readFile(name, most)
		close(read)
	}()
	select {
	case <-read:
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return nil, cutOff(ctx, errors.New("the body was not read to its end, and nothing was stored"))
	}
	return body, err
}

// readFile reads a body, but not more than a body may hold.
func (a *app) readFile(name string, most int) ([]byte, error) {
	from := a.in
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		from = file
	}
	body, err := io.ReadAll(io.LimitReader(from, int64(most)+1))
	if err != nil {
		return nil, err
	}
	if len(body) > most {
		return nil, fmt.Errorf("%s is larger than the %d bytes of --max-body", name, most)
	}
	return body, nil
}
