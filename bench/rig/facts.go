package rig

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/xstreamq/xstreamq/bench/peer"
)

// facts describes the machine and the programs, and fills in the versions of the systems.
func (r *Rig) facts(ctx context.Context) ([]string, error) {
	info, err := r.servers[0].info(ctx, "server")
	if err != nil {
		return nil, err
	}
	versions, err := r.versions()
	if err != nil {
		return nil, err
	}
	for i := range r.systems {
		r.systems[i].Version = versions[r.systems[i].Name]
		r.result.Systems = append(r.result.Systems, r.systems[i].System)
	}
	if r.wants("raw") {
		for _, s := range rawRuns() {
			s.Version = info["redis_version"]
			r.result.Systems = append(r.result.Systems, s.System)
		}
	}
	facts := []string{
		fmt.Sprintf("%d CPUs: %s", runtime.NumCPU(), firstField("/proc/cpuinfo", "model name")),
		fmt.Sprintf("memory: %s; kernel: Linux %s", firstField("/proc/meminfo", "MemTotal"), firstLine("/proc/sys/kernel/osrelease")),
		"load average before the run (1, 5, 15 minutes): " + strings.Join(strings.Fields(firstLine("/proc/loadavg"))[:3], ", "),
		fmt.Sprintf("%s; Redis %s, started with --save '' and --appendonly no (\"off\"), or --appendonly yes --appendfsync everysec (\"AOF\"); "+
			"loopback TCP", runtime.Version(), info["redis_version"]),
		fmt.Sprintf("every body: %d bytes; every handler: none", peer.BodySize),
	}
	r.result.Busy = busy(firstLine("/proc/loadavg"), runtime.NumCPU())
	if r.NodeDir != "" {
		version, err := exec.CommandContext(ctx, "node", "--version").Output()
		if err != nil {
			return nil, fmt.Errorf("node --version: %w", err)
		}
		facts = append(facts, "Node "+strings.TrimSpace(string(version)))
	}
	return facts, nil
}

// busy says that others use more than a quarter of the machine, or nothing.
func busy(loadavg string, cpus int) string {
	load, err := strconv.ParseFloat(strings.Fields(loadavg + " -")[0], 64)
	if err != nil || load <= float64(cpus)/4 {
		return ""
	}
	return fmt.Sprintf("the load average before the run was %.1f on %d CPUs", load, cpus)
}

// versions by system.
func (r *Rig) versions() (map[string]string, error) {
	modules := map[string]string{}
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, m := range build.Deps {
			modules[m.Path] = m.Version
		}
	}
	rueidis := "rueidis " + modules["github.com/redis/rueidis"]
	versions := map[string]string{
		"xstreamq": "this checkout, " + rueidis, "xstreamq-ahead": "this checkout", "xstreamq-batch": "this checkout",
		"asynq":     modules["github.com/hibiken/asynq"],
		"watermill": "watermill " + modules["github.com/ThreeDotsLabs/watermill"] + ", redisstream " + modules["github.com/ThreeDotsLabs/watermill-redisstream"],
		"bare":      rueidis,
	}
	if r.NodeDir == "" {
		return versions, nil
	}
	ioredis, err := r.nodeVersion("ioredis")
	if err != nil {
		return nil, err
	}
	versions["ioredis"] = "ioredis " + ioredis
	if versions["rsmq"], err = r.nodeVersion("rsmq"); err != nil {
		return nil, err
	}
	bullmq, err := r.nodeVersion("bullmq")
	versions["bullmq"] = bullmq + ", ioredis " + ioredis
	return versions, err
}

func (r *Rig) nodeVersion(name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(r.NodeDir, "node_modules", name, "package.json"))
	if err != nil {
		return "", err
	}
	var manifest struct {
		Version string `json:"version"`
	}
	return manifest.Version, json.Unmarshal(text, &manifest)
}

func firstLine(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return "unknown"
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}

// firstField returns what stands behind the first "name:" in a file.
func firstField(file, name string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}
