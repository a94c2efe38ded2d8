package redistest

import (
	"context"
	"io"
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

func TestStoppedServerEndsInGoodOrder(t *testing.T) {
	t.Parallel()
	// A snapshot is due in an hour, or at an orderly end.
	server := Start(t, Options{Args: []string{"--save", "3600", "1"}})
	set(t, Dial(t, server.URL()), "key", "kept")

	server.Pause() // a paused server is to end in good order too
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

func TestRestartWaitsForTheDataToBeLoaded(t *testing.T) {
	t.Parallel()
	const keys = 5_000 // the server answers "loading" between batches of 1,024
	server := Start(t, Options{AOF: "everysec", Args: []string{"--key-load-delay", "50"}})
	client := Dial(t, server.URL())
	commands := make(rueidis.Commands, 0, keys)
	for i := range keys {
		commands = append(commands, client.B().Set().Key(strconv.Itoa(i)).Value("v").Build())
	}
	for _, result := range client.DoMulti(t.Context(), commands...) {
		if err := result.Error(); err != nil {
			t.Fatal(err)
		}
	}
	server.Kill()
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	wire := connect(t, server.Addr())
	wire.send("DBSIZE")
	wire.wantReply(":" + strconv.Itoa(keys))
}

// runID is Redis's own name for one run of a server.
func runID(tb testing.TB, server *Server) string {
	tb.Helper()
	client := Dial(tb, server.URL())
	info, err := client.Do(context.Background(), client.B().Info().Section("server").Build()).ToString()
	if err != nil {
		tb.Fatal(err)
	}
	_, rest, _ := strings.Cut(info, "run_id:")
	id, _, _ := strings.Cut(rest, "\r\n")
	return id
}

func TestRestartOfARunningServerIsANewProcess(t *testing.T) {
	t.Parallel()
	server := Start(t, Options{})
	addr, before := server.Addr(), runID(t, server)
	server.Pause() // a paused server can be restarted too
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	if after := runID(t, server); after == before {
		t.Errorf("run %s is still the server after Restart", after)
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
	// The squatter is a Redis too, but not the one that was started.
	go func() {
		for {
			conn, err := squatter.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "+PONG\r\n$15\r\nprocess_id:-1\r\n\r\n")
			_ = conn.Close()
		}
	}()
	restarted := make(chan error, 1)
	go func() { restarted <- server.Restart() }()
	WaitFor(t, 20*time.Second, "the server to find its port taken", func() bool {
		return strings.Contains(server.logSince(0), "Address already in use")
	})
	if err := squatter.Close(); err != nil {
		t.Error(err)
	}
	if err := <-restarted; err != nil {
		t.Error(err)
	}
	set(t, Dial(t, server.URL()), "key", "v")
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
	if err := admin.Do(t.Context(), admin.B().Arbitrary(AddSlots(0, 16383)...).Build()).Error(); err != nil {
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
