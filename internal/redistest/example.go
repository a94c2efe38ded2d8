package redistest

import "crypto/rand"

// Example is URL and Prefix for a runnable example, which has no test to fail or to clean up after. done removes the keys under
// prefix. Without a server, or when it cannot clean up, it panics.
func Example() (url, prefix string, done func()) {
	url, err := shared.get()
	if err != nil {
		panic(err)
	}
	prefix = "example-" + rand.Text()[:10] + ":"
	return url, prefix, func() {
		if err := removeKeys(url, prefix); err != nil {
			panic(err)
		}
	}
}
