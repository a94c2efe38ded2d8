package redistest

import "strconv"

// AddSlots returns the words of a command that gives a node of a cluster the slots from first to last: the one that Redis 6.2 knows too.
func AddSlots(first, last int) []string {
	words := []string{"CLUSTER", "ADDSLOTS"}
	for slot := first; slot <= last; slot++ {
		words = append(words, strconv.Itoa(slot))
	}
	return words
}
