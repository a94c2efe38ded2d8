package redistest

import "testing"

func TestContainerRunsRedis(t *testing.T) {
	t.Parallel()
	url, ok := StartContainer(t)
	if !ok {
		t.Skip("no Docker: nothing was tested in a container")
	}
	client := Dial(t, url)
	set(t, client, "key", "v")
	if got := get(t, client, "key"); got != "v" {
		t.Errorf("got %q, want %q", got, "v")
	}
}
