package redistest

import (
	"context"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
)

func TestKilledServerKeepsWhatItsAppendOnlyFileHolds(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		aof  string
		want string
	}{
		{aof: "always", want: "kept"},
		{aof: "", want: ""},
	} {
		t.Run("aof="+test.aof, func(t *testing.T) {
			t.Parallel()
			server := Start(t, Options{AOF: test.aof})
			set(t, Dial(t, server.URL()), "key", "kept")

			server.Kill()
			if server.Alive() {
				t.Fatal("the server is alive after Kill")
			}
			if err := server.Restart(); err != nil {
				t.Fatal(err)
			}
			if got := get(t, Dial(t, server.URL()), "key"); got != test.want {
				t.Errorf("after kill and restart: got %q, want %q", got, test.want)
			}
		})
	}
}

func TestStoppedServerWritesItsAppendOnlyFile(t *testing.T) {
	t.Parallel()
	server := Start(t, Options{AOF: "everysec"})
	set(t, Dial(t, server.URL()), "key", "kept")

	server.Stop()
	if server.Alive() {
		t.Fatal("the server is alive after Stop")
	}
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	if got := get(t, Dial(t, server.URL()), "key"); got != "kept" {
		t.Errorf("after stop and restart: got %q, want %q", got, "kept")
	}
}

func TestRestartOfARunningServerIsANewProcess(t *testing.T) {
	t.Parallel()
	server := Start(t, Options{})
	addr, before := server.Addr(), server.proc.pid()
	server.Pause() // a paused server can be restarted too
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	if after := server.proc.pid(); after == before {
		t.Errorf("process %d is still the server after Restart", after)
	}
	if server.Addr() != addr {
		t.Errorf("the address moved from %s to %s", addr, server.Addr())
	}
	if _, ok := ready(addr); !ok {
		t.Errorf("the server does not answer at %s after Restart", addr)
	}
}

func TestPausedServerAnswersNothingUntilResumed(t *testing.T) {
	t.Parallel()
	server := Start(t, Options{})
	client := Dial(t, server.URL())
	set(t, client, "key", "before")

	server.Pause()
	if !server.Alive() {
		t.Error("a paused server counts as dead")
	}
	answer := make(chan error, 1)
	go func() {
		set := client.B().Set().Key("key").Value("after").Build()
		answer <- client.Do(context.Background(), set).Error()
	}()
	select {
	case err := <-answer:
		t.Fatalf("a paused server answered: %v", err)
	case <-time.After(150 * time.Millisecond):
	}
	server.Resume()
	if err := <-answer; err != nil {
		t.Fatalf("after Resume: %v", err)
	}
	if got := get(t, client, "key"); got != "after" {
		t.Errorf("after Resume: got %q, want %q", got, "after")
	}
}

func TestServerTakesArguments(t *testing.T) {
	t.Parallel()
	server := Start(t, Options{Args: []string{"--maxmemory", "10mb", "--maxmemory-policy", "noeviction"}})
	client := Dial(t, server.URL())
	config, err := client.Do(t.Context(), client.B().ConfigGet().Parameter("maxmemory").Build()).AsStrMap()
	if err != nil {
		t.Fatal(err)
	}
	if want := strconv.Itoa(10 << 20); config["maxmemory"] != want {
		t.Errorf("maxmemory is %s, want %s", config["maxmemory"], want)
	}
}

func TestServerThatCannotStartSaysWhy(t *testing.T) {
	t.Parallel()
	_, err := NewServer(Options{Args: []string{"--no-such-setting", "1"}})
	if err == nil {
		t.Fatal("NewServer took a setting that does not exist")
	}
	wantContains(t, err.Error(), "no-such-setting")
}

func TestServerComesBackAfterSomebodyHadItsPort(t *testing.T) {
	t.Parallel()
	server := Start(t, Options{})
	server.Kill()
	squatter, err := net.Listen("tcp", server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan struct{})
	go func() {
		defer close(accepted)
		conn, err := squatter.Accept() // the first look at the port while the squatter has it
		if err == nil {
			_ = conn.Close()
		}
		_ = squatter.Close()
	}()
	if err := server.Restart(); err != nil {
		t.Error(err)
	}
	<-accepted
}

func TestCloseRemovesProcessAndDirectory(t *testing.T) {
	t.Parallel()
	server, err := NewServer(Options{})
	if err != nil {
		t.Fatal(err)
	}
	server.Pause()
	for range 2 {
		if err := server.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if server.Alive() {
		t.Error("the server is alive after Close")
	}
	if _, err := os.Stat(server.dir); !os.IsNotExist(err) {
		t.Errorf("the directory %s is left after Close: %v", server.dir, err)
	}
}

func TestServerKeepsACallersDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, want := range []string{"", "kept"} {
		server, err := NewServer(Options{AOF: "always", Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		client, err := Open(server.URL())
		if err != nil {
			t.Fatal(err)
		}
		if got := get(t, client, "key"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		set(t, client, "key", "kept")
		client.Close()
		if err := server.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestServerAsClusterNode(t *testing.T) {
	t.Parallel()
	server := Start(t, Options{Args: []string{"--cluster-enabled", "yes"}})
	admin, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{server.Addr()}, ForceSingleClient: true, DisableCache: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	add := admin.B().ClusterAddslotsrange().StartSlotEndSlot().StartSlotEndSlot(0, 16383).Build()
	if err := admin.Do(t.Context(), add).Error(); err != nil {
		t.Fatal(err)
	}
	WaitFor(t, 10*time.Second, "the cluster to be ready", func() bool {
		info, _ := admin.Do(t.Context(), admin.B().ClusterInfo().Build()).ToString()
		return strings.Contains(info, "cluster_state:ok")
	})
	client := Dial(t, server.URL())
	set(t, client, "key", "v")
	if got := get(t, client, "key"); got != "v" {
		t.Errorf("got %q, want %q", got, "v")
	}
}
