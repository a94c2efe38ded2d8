package cli

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

// doctorWait is enough for what takes Redis a second, on a machine with other things to do.
const doctorWait = 60 * time.Second

// doctored runs doctor on a server, and checks its exit code and that a line begins as wanted.
func doctored(t *testing.T, server *redistest.Server, code int, want string) {
	t.Helper()
	got := run(t, "doctor", "--url", server.URL())
	if got.code != code || got.stderr != "" || !strings.Contains("\n"+got.stdout, "\n"+want) {
		t.Errorf("exit code %d, want %d and a line that begins with %q:\n%s%s", got.code, code, want, got.stdout, got.stderr)
	}
}

// infoOf is a field of a server's INFO.
func infoOf(t *testing.T, client rueidis.Client, field string) string {
	t.Helper()
	text, err := client.Do(t.Context(), client.B().Info().Build()).ToString()
	if err != nil {
		t.Fatal(err)
	}
	return infoFields(text)[field]
}

// A replica that keeps up is well, one that says nothing for long is not.
func TestDoctorReplica(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t, redistest.Options{})
	_, port, _ := strings.Cut(master.Addr(), ":")
	replica := redistest.Start(t, redistest.Options{Args: []string{"--replicaof", "127.0.0.1", port, "--repl-diskless-sync-delay", "0"}})
	client := redistest.Dial(t, master.URL())
	redistest.WaitFor(t, doctorWait, "a replica that keeps up", func() bool {
		return strings.Contains(infoOf(t, client, "slave0"), "state=online")
	})
	doctored(t, master, 0, "ok\treplicas\t-\t1 replica, which keeps up\t")
	doctored(t, replica, 1, "problem\trole\t-\ta replica of 127.0.0.1:"+port+", whose link is up\t")
	replica.Pause()
	redistest.WaitFor(t, doctorWait, "a silent replica", func() bool {
		about := infoPairs(infoOf(t, client, "slave0"))
		return len(about["lag"]) == 2 && about["lag"] > "10"
	})
	doctored(t, master, 0, "warning\treplicas\t-\treplica 127.0.0.1:")
	replica.Resume()
}

// A server that cannot write its snapshot refuses writes.
func TestDoctorSnapshots(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := redistest.Start(t, redistest.Options{Dir: dir, Args: []string{"--save", "1", "1"}})
	client := redistest.Dial(t, server.URL())
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := client.Do(t.Context(), client.B().Set().Key("change").Value("1").Build()).Error(); err != nil {
		t.Fatal(err)
	}
	redistest.WaitFor(t, doctorWait, "a failed snapshot", func() bool { return infoOf(t, client, "rdb_last_bgsave_status") == "err" })
	doctored(t, server, 1, "problem\tsnapshots\t-\tthe last one failed: Redis refuses writes until one succeeds (MISCONF)\t")
	doctored(t, server, 1, "problem\twrite\t-\trefused: MISCONF ")
}

// What is said of a node of a cluster is said to be that.
func TestDoctorCluster(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{Args: []string{"--cluster-enabled", "yes"}})
	client := redistest.Dial(t, server.URL())
	if err := client.Do(t.Context(), client.B().Arbitrary(redistest.AddSlots(0, 16383)...).Build()).Error(); err != nil {
		t.Fatal(err)
	}
	redistest.WaitFor(t, doctorWait, "a whole cluster", func() bool {
		state, err := client.Do(t.Context(), client.B().Arbitrary("CLUSTER", "INFO").Build()).ToString()
		return err == nil && strings.Contains(state, "cluster_state:ok")
	})
	doctored(t, server, 0, "note\tmode\t-\ta cluster; what is said of the server is of one of its nodes\t")
}
