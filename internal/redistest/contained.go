package redistest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
)

// containedProcess is one run of a server in a container of its own. The container shares the network and the
// directory of the server with the host, so that a run differs from a local one in nothing that a test can see. Its
// methods are called one at a time.
type containedProcess struct {
	container testcontainers.Container
	docker    *testcontainers.DockerClient
	logPath   string
	removed   bool // whatever asks Docker from then on would leave a connection open
}

// startContained runs redis-server in a container, with its log in the file logPath.
func startContained(args []string, dir, logPath string) (process, error) {
	ctx, cancel := context.WithTimeout(context.Background(), containerTimeout)
	defer cancel()
	docker, err := testcontainers.NewDockerClientWithOpts(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoDocker, err)
	}
	command := slices.Concat([]string{"redis-server"}, args, []string{"--logfile", logPath})
	run, err := testcontainers.Run(ctx, imageName(),
		testcontainers.WithCmd(command...),
		testcontainers.WithConfigModifier(func(config *container.Config) {
			config.User = fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid()) // so that its files can be removed
		}),
		testcontainers.WithHostConfigModifier(func(config *container.HostConfig) {
			config.NetworkMode = "host"
			config.Binds = []string{dir + ":" + dir}
		}))
	if err != nil {
		err = fmt.Errorf("run a container of %s (%s names another image): %w", imageName(), imageVariable, err)
		return nil, errors.Join(err, testcontainers.TerminateContainer(run), docker.Close())
	}
	return &containedProcess{container: run, docker: docker, logPath: logPath}, nil
}

// pid is what the first process of a container sees.
func (p *containedProcess) pid() int { return 1 }

func (p *containedProcess) alive() bool { return p.hostPID() != 0 }

// hostPID is the server's process as the host sees it, 0 after its end.
func (p *containedProcess) hostPID() int {
	if p.removed {
		return 0
	}
	ctx, cancel := context.WithTimeout(context.Background(), dockerTimeout)
	defer cancel()
	state, err := p.container.State(ctx)
	if err != nil || !state.Running {
		return 0
	}
	return state.Pid
}

// kill also removes the container: the data are in the directory, and the next run is a new container.
func (p *containedProcess) kill() {
	p.signal("SIGKILL")
	poll(stopTimeout, func() bool { return !p.alive() })
	p.remove()
}

func (p *containedProcess) stop() {
	p.signal("SIGCONT") // a paused process would not see the next signal
	p.signal("SIGTERM")
	poll(stopTimeout, func() bool { return !p.alive() })
	p.remove()
}

func (p *containedProcess) pause() {
	p.signal("SIGSTOP")
	poll(stopTimeout, func() bool {
		pid := p.hostPID()
		return pid == 0 || stopped(pid)
	})
}

func (p *containedProcess) resume() { p.signal("SIGCONT") }

// remove ends what still runs. A container that Docker cannot remove is Docker's to report: its next run would fail.
func (p *containedProcess) remove() {
	if p.removed {
		return
	}
	p.removed = true
	p.keepOutput()
	_ = testcontainers.TerminateContainer(p.container)
	_ = p.docker.Close()
}

// keepOutput adds to the log what the server said before it opened the log: why it does not take its arguments.
func (p *containedProcess) keepOutput() {
	ctx, cancel := context.WithTimeout(context.Background(), dockerTimeout)
	defer cancel()
	output, err := p.container.Logs(ctx)
	if err != nil {
		return
	}
	defer output.Close()
	file, err := os.OpenFile(p.logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer file.Close()
	_, _ = io.Copy(file, output)
}

// signal fails for a container that has ended, as it does for a process.
func (p *containedProcess) signal(name string) {
	if p.removed {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), dockerTimeout)
	defer cancel()
	_, _ = p.docker.ContainerKill(ctx, p.container.GetContainerID(), client.ContainerKillOptions{Signal: name})
}
