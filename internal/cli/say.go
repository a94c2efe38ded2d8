package cli

import (
	"fmt"
	"io"
)

// markWidth is that of the longest mark.
const markWidth = len("unhealthy")

// markColors are those of the words that say how something is: green, blue, yellow and red.
var markColors = map[string]string{
	"ok": "32", "idle": "32", "working": "32", "note": "34", "unknown": "33", "warning": "33", "unhealthy": "31", "problem": "31",
}

// say prints on a terminal how something is, in a whole sentence, and on a line of its own what to do, if there is anything.
func (a *app) say(mark, about, sentence, do string) error {
	padded := fmt.Sprintf("%-*s", markWidth, mark)
	if a.colors() {
		padded = "\x1b[" + markColors[mark] + "m" + padded + "\x1b[0m"
	}
	text := padded + "  " + printable(about) + ": " + printable(sentence) + "\n"
	if do != "" {
		text += fmt.Sprintf("%*s  -> %s\n", markWidth, "", printable(do))
	}
	_, err := io.WriteString(a.out, text)
	return err
}
