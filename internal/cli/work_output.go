package cli

import "errors"

// outputTrouble says what is wrong with the stream that commands print to, or nil. A command that fails for it is not to blame.
func outputTrouble(stream any) error {
	switch {
	case readerGone(stream):
		return errors.New("nobody reads the standard output any more")
	case noRoom(stream):
		return errors.New("there is no room left for the standard output")
	}
	return nil
}
