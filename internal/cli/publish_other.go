//go:build !unix

package cli

// inputClosed reports that there is no standard input.
func inputClosed(stream any) bool {
	file, ok := fileOf(stream)
	if !ok {
		return false
	}
	_, err := file.Stat()
	return err != nil
}
