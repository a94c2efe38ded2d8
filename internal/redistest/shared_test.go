package redistest

import (
	"bufio"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// nowhere keeps a helper process from finding a server binary or Docker.
func nowhere(tb testing.TB) []string {
	tb.Helper()
	return []string{"PATH=" + tb.TempDir(), "DOCKER_HOST=unix://" + filepath.Join(tb.TempDir(), "docker.sock")}
}

func TestEnvironmentNamesTheServer(t *testing.T) {
	t.Parallel()
	server := Start(t, Options{})
	output, err := helper(t, "url", append(nowhere(t), urlVariable+"="+server.URL())...).CombinedOutput()
	if err != nil || strings.TrimSpace(string(output)) != server.URL() {
		t.Errorf("got %s, %v; want %s", output, err, server.URL())
	}
	if !server.Alive() {
		t.Error("a server that was not started here was stopped")
	}
}

func TestEnvironmentsServerMustAnswer(t *testing.T) {
	t.Parallel()
	server := Start(t, Options{})
	server.Kill()
	for name, url := range map[string]string{
		"nobody there": "redis://:secret@" + server.Addr(),
		"malformed":    "redis://:secret@localhost:port",
		"other scheme": "http://:secret@" + server.Addr(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			output, err := helper(t, "url", urlVariable+"="+url).CombinedOutput()
			if err == nil {
				t.Errorf("another server was taken: %s", output)
			}
			wantContains(t, string(output), urlVariable)
			if strings.Contains(string(output), "secret") {
				t.Errorf("the password is printed: %s", output)
			}
		})
	}
}

func TestValkeyOnPathServesToo(t *testing.T) {
	t.Parallel()
	binary, err := findBinary()
	if err != nil {
		t.Skipf("no binary to find under another name: %v", err)
	}
	dir := t.TempDir()
	if err := os.Symlink(binary, filepath.Join(dir, "valkey-server")); err != nil {
		t.Fatal(err)
	}
	output, err := helper(t, "url", append(nowhere(t), "PATH="+dir)...).CombinedOutput()
	if err != nil || !strings.HasPrefix(string(output), "redis://127.0.0.1:") {
		t.Errorf("got %s, %v; want the address of a server", output, err)
	}
}

func TestWithoutAnyRedisTheWaysAreNamed(t *testing.T) {
	t.Parallel()
	output, err := helper(t, "url", nowhere(t)...).CombinedOutput()
	if err == nil {
		t.Fatalf("a server was found: %s", output)
	}
	for _, way := range []string{"scripts/redis.sh", "redis-server", "valkey-server", "Docker", urlVariable} {
		wantContains(t, string(output), way)
	}
}

func TestServersAreGoneAfterTheProcess(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*os.Process) error{
		"ended":  nil,
		"killed": (*os.Process).Kill,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := findBinary(); name == "killed" && (err != nil || runtime.GOOS != "linux") {
				t.Skip("only a local process on Linux ends with its parent; containers are left to testcontainers' reaper")
			}
			cmd := helper(t, "url")
			input, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			output, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			url, err := bufio.NewReader(output).ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			addr := strings.TrimPrefix(strings.TrimSpace(url), "redis://")
			if _, ok := ready(addr); !ok {
				t.Errorf("no server answers at %s", addr)
			}
			if end != nil {
				if err := end(cmd.Process); err != nil {
					t.Fatal(err)
				}
			}
			_ = input.Close()
			_ = cmd.Wait() // a killed process reports the signal
			WaitFor(t, 10*time.Second, "the server at "+addr+" to be gone", func() bool {
				_, ok := ready(addr)
				return !ok
			})
		})
	}
}

func TestMainFailsWhenGoroutinesAreLeft(t *testing.T) {
	t.Parallel()
	if output, err := helper(t, "none").CombinedOutput(); err != nil {
		t.Errorf("without a leak: %v\n%s", err, output)
	}
	output, err := helper(t, "leak").CombinedOutput()
	if err == nil {
		t.Error("a goroutine was left and the tests passed")
	}
	wantContains(t, string(output), "goroutines are left")
}

func TestURLIsOneServer(t *testing.T) {
	t.Parallel()
	if first, second := URL(t), URL(t); first != second {
		t.Errorf("the shared server is %s, then %s", first, second)
	}
}
