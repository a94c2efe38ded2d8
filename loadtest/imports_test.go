package main

import (
	"os/exec"
	"strings"
	"testing"
)

// The producer and the oracle judge the library by the contract: nothing of it, nor its Redis client, may be in them.
func TestJudgesDoNotKnowTheLibrary(t *testing.T) {
	t.Parallel()
	const library = "github.com/xstreamq/xstreamq"
	for _, name := range []string{"producer", "resp", "oracle", "journal", "message", "fault"} {
		out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "./internal/"+name).CombinedOutput()
		if err != nil {
			t.Fatalf("go list: %v\n%s", err, out)
		}
		seen := false
		for path := range strings.FieldsSeq(string(out)) {
			seen = seen || path == library+"/loadtest/internal/"+name
			ours := strings.HasPrefix(path, library+"/loadtest/internal/")
			if strings.HasPrefix(path, library) && !ours || strings.HasPrefix(path, "github.com/redis/") {
				t.Errorf("%s depends on %s", name, path)
			}
		}
		if !seen {
			t.Errorf("%s is not listed: this test proves nothing", name)
		}
	}
}
