//go:build unix

package cli

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
)

func TestConfirm(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]error{
		"y\n": nil, "yes\n": nil, "YES \n": nil,
		"n\n": errQuiet, "\n": errQuiet, "yeah\n": errQuiet, "no\ny\n": errQuiet,
		"\x04": errQuiet, "y\x04\x04": errQuiet,
	} {
		var err error
		screen := onTerminal(t, 80, typed, func(a *app) { err = a.confirm("purge \x1b[2J", false) })
		if !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", typed, err, want)
		}
		if !strings.Contains(screen, `purge \x1b[2J? [y/N] `) || strings.Contains(screen, "nothing was changed\n") != (want != nil) {
			t.Errorf("%q: the screen shows %q", typed, screen)
		}
	}
}

func TestConfirmEndsWithTheCommand(t *testing.T) {
	t.Parallel()
	var err error
	screen := onTerminal(t, 80, "", func(a *app) {
		var cancel context.CancelFunc
		a.ctx, cancel = context.WithCancel(t.Context())
		cancel()
		err = a.confirm("purge", false)
	})
	if !errors.Is(err, context.Canceled) || !strings.HasSuffix(screen, "[y/N] \n") {
		t.Errorf("%v, the screen shows %q", err, screen)
	}
}

func TestConfirmWithoutATerminal(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	a := &app{in: strings.NewReader("y\n"), err: &out, ctx: t.Context()}
	if err := a.confirm("purge all", false); !errors.As(err, new(usageError)) || !strings.Contains(err.Error(), "--yes") {
		t.Errorf("got %v, want a usage error that names --yes", err)
	}
	onTerminal(t, 80, "y\n", func(on *app) {
		for _, a := range []*app{{in: on.in, err: &out, ctx: t.Context()}, {in: strings.NewReader("y\n"), err: on.err, ctx: t.Context()}} {
			if err := a.confirm("purge all", false); !errors.As(err, new(usageError)) {
				t.Errorf("with half a terminal: %v, want a usage error", err)
			}
		}
	})
	if err := a.confirm("purge all", true); err != nil || out.Len() > 0 {
		t.Errorf("with --yes: %v, %q", err, out.String())
	}
}
