package journal

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// writerVariable makes this test binary write a journal until it is killed.
const writerVariable = "XSTREAMQ_JOURNAL_TEST_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(writerVariable); dir != "" {
		w, err := Create(dir, 1)
		for i := 0; err == nil; i++ {
			r := record(i)
			if err = w.Write(&r); err == nil {
				_, err = os.Stdout.WriteString("x")
			}
		}
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func record(i int) Record {
	return Record{
		Seq: i, Kind: Kind(1 + i%3), Group: uint8(i % 2), Failures: uint16(i % 5), Lost: uint16(i % 7), Run: 1,
		Entry: ID{1796060001000 + uint64(i), uint32(i)}, Original: ID{1796060000000 + uint64(i), 1 << 31}, At: 1 << 60, Sent: int64(-i),
	}
}

func write(t *testing.T, dir string, run, n int) string {
	t.Helper()
	w, err := Create(dir, run)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		r := record(i)
		if err := w.Write(&r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	paths, err := Files(dir)
	if err != nil {
		t.Fatal(err)
	}
	return paths[len(paths)-1]
}

func readFile(t *testing.T, path string) (records []Record, err error) {
	t.Helper()
	err = Read(path, func(r *Record) { records = append(records, *r) })
	return records, err
}

// A file that ends within a record holds all the records before it, wherever it ends.
func TestTornTail(t *testing.T) {
	t.Parallel()
	path := write(t, t.TempDir(), 1, 3)
	whole, err := os.ReadFile(path)
	if err != nil || len(whole) != 3*Size {
		t.Fatalf("%d bytes, %v", len(whole), err)
	}
	for n := range len(whole) + 1 {
		if err := os.WriteFile(path, whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := readFile(t, path)
		if err != nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
		want := []Record{record(0), record(1), record(2)}[:n/Size]
		if diff := cmp.Diff(want, append([]Record{}, got...)); diff != "" {
			t.Fatalf("%d bytes (-want +got):\n%s", n, diff)
		}
	}
}

func TestDamageIsAnError(t *testing.T) {
	t.Parallel()
	path := write(t, t.TempDir(), 1, 3)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	whole[Size+20] ^= 1
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := readFile(t, path)
	if err == nil || !strings.Contains(err.Error(), "byte 64") || len(got) != 1 {
		t.Errorf("%d records, %v", len(got), err)
	}
}

func TestRunHasOneJournal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, 7, 1)
	if _, err := Create(dir, 7); !errors.Is(err, os.ErrExist) {
		t.Errorf("a second journal of run 7: %v", err)
	}
}

// A follower counts each record once, also of files that grow, that come later, and that end in a torn record.
func TestFollower(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := write(t, dir, 1, 7)
	seen := 0
	f := Follow(dir)
	f.Each = func(*Record) { seen++ }
	poll := func(want Totals) {
		t.Helper()
		got, err := f.Poll()
		if err != nil || got != want {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
	}
	poll(Totals{Starts: 3, OK: 2, Failed: 2})
	poll(Totals{Starts: 3, OK: 2, Failed: 2})
	next := record(0)
	b := next.Append(nil)
	grow := func(part []byte) {
		t.Helper()
		file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if _, err := file.Write(part); err != nil {
			t.Fatal(err)
		}
	}
	grow(b[:10])
	poll(Totals{Starts: 3, OK: 2, Failed: 2})
	grow(b[10:])
	write(t, dir, 2, 3)
	poll(Totals{Starts: 5, OK: 3, Failed: 3})
	if seen != 11 {
		t.Errorf("%d records were shown", seen)
	}
}

// What a process has written is there after kill -9: it tells of each record after the write, and is killed at once.
func TestKilledWriterLosesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writer := exec.CommandContext(t.Context(), os.Args[0])
	writer.Env = append(os.Environ(), writerVariable+"="+dir)
	out, err := writer.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := writer.Start(); err != nil {
		t.Fatal(err)
	}
	told := 0
	for buf := make([]byte, 4096); told < 2000; {
		n, err := out.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		told += n
	}
	if err := writer.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = writer.Wait() // it was killed
	written := 0
	err = Read(filepath.Join(dir, "run-000001.journal"), func(r *Record) {
		if *r != record(written) {
			t.Errorf("record %d is %+v", written, *r)
		}
		written++
	})
	if err != nil || written < told {
		t.Errorf("%d records were told of, %d are there; %v", told, written, err)
	}
}

func TestParseID(t *testing.T) {
	t.Parallel()
	if id, ok := ParseID("1796060001000-42"); !ok || id.String() != "1796060001000-42" {
		t.Errorf("%v, %v", id, ok)
	}
	for _, bad := range []string{"", "1", "1-", "-1", "1-2-3", "d17-0a", "1-99999999999"} {
		if id, ok := ParseID(bad); ok {
			t.Errorf("%q was read as %v", bad, id)
		}
	}
	if !(ID{1, 9}).Less(ID{2, 0}) || !(ID{1, 1}).Less(ID{1, 2}) || (ID{1, 1}).Less(ID{1, 1}) {
		t.Error("ids are not in order")
	}
}
