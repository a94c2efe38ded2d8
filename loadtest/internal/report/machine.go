package report

import (
	"context"
	"runtime"
	"strings"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/host"
	"github.com/shirou/gopsutil/v4/mem"
)

// ThisMachine describes the machine and the toolchain. What the system does not tell stays empty.
func ThisMachine(ctx context.Context) Machine {
	m := Machine{Cores: runtime.GOMAXPROCS(0), OS: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version()}
	if processors, err := cpu.InfoWithContext(ctx); err == nil && len(processors) > 0 {
		m.CPU = strings.Join(strings.Fields(processors[0].ModelName), " ")
	}
	if memory, err := mem.VirtualMemoryWithContext(ctx); err == nil {
		m.Memory = memory.Total
	}
	if platform, _, version, err := host.PlatformInformationWithContext(ctx); err == nil && platform != "" {
		m.OS = strings.TrimSpace(platform + " " + version + " (" + m.OS + ")")
	}
	return m
}

// Server adds what the Redis server said of itself: its reply to INFO, and the values of the parameters appendonly,
// appendfsync and save. Parameters that are missing, since the server hides them, are told as unknown.
func (m *Machine) Server(info string, config map[string]string) {
	facts := InfoFields(info)
	switch {
	case facts["server_name"] != "" && facts[facts["server_name"]+"_version"] != "":
		// Valkey tells an old version of Redis beside its own.
		name := facts["server_name"]
		m.Redis = strings.ToUpper(name[:1]) + name[1:] + " " + facts[name+"_version"]
	case facts["redis_version"] != "":
		m.Redis = "Redis " + facts["redis_version"]
	}
	m.Persistence = persistence(config)
}

func persistence(config map[string]string) string {
	appendOnly, known := config["appendonly"]
	log := "AOF off"
	switch {
	case !known:
		log = "AOF unknown"
	case appendOnly == "yes":
		log = strings.TrimSpace("AOF " + config["appendfsync"])
	}
	save, known := config["save"]
	switch {
	case !known:
		return log + ", snapshots unknown"
	case strings.TrimSpace(save) == "":
		return log + ", no snapshots"
	}
	return log + ", snapshots " + save
}

// InfoFields parses the reply to INFO.
func InfoFields(info string) map[string]string {
	out := make(map[string]string)
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && !strings.HasPrefix(name, "#") {
			out[name] = value
		}
	}
	return out
}
