package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"time"
)

// sameSignal is how long after the first signal another one is taken for the same: timeout(1), for one, sends it to the
// process and then to its group.
const sameSignal = 200 * time.Millisecond

// onSignals calls first at the first signal that asks for an end, and second at the next one. ctx has ended where the first one
// came before. The func it returns ends that.
func onSignals(ctx context.Context, first func(why error), second func(os.Signal)) func() {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, stopSignals()...)
	over := make(chan struct{})
	go func() {
		select {
		case s := <-signals:
			first(fmt.Errorf("%s signal received", s))
		case <-ctx.Done():
			first(context.Cause(ctx))
		case <-over:
			return
		}
		began := time.Now()
		for {
			select {
			case s := <-signals:
				if time.Since(began) > sameSignal {
					second(s)
					return
				}
			case <-over:
				return
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(over)
	}
}
