package redistest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/testcontainers/testcontainers-go"
)

const (
	imageVariable = "XSTREAMQ_TEST_REDIS_IMAGE"
	defaultImage  = "redis:7-alpine"

	dockerTimeout    = 10 * time.Second // for Docker to say that it is there
	containerTimeout = 3 * time.Minute  // to pull the image and start; also to remove the container
)

// ErrNoDocker says that there is no Docker to start a container with.
var ErrNoDocker = errors.New("no Docker engine answers")

// StartContainer gives the test a Redis in a container, removed at the end of the test. The image is
// XSTREAMQ_TEST_REDIS_IMAGE, redis:7-alpine by default. Without Docker ok is false and the test's log says so: skip
// the test then. A Docker that is there but does not work fails the test.
func StartContainer(tb testing.TB) (url string, ok bool) {
	tb.Helper()
	url, stop, err := runContainer()
	if errors.Is(err, ErrNoDocker) {
		tb.Logf("NO CONTAINER: %v", err)
		return "", false
	}
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := stop(); err != nil {
			tb.Error(err)
		}
	})
	return url, true
}

func runContainer() (url string, stop func() error, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), containerTimeout)
	defer cancel()
	if err := dockerAnswers(); err != nil {
		return "", nil, err
	}
	image := imageName()
	container, err := testcontainers.Run(ctx, image, testcontainers.WithExposedPorts("6379/tcp"))
	stop = func() error {
		if err := testcontainers.TerminateContainer(container); err != nil {
			return fmt.Errorf("redistest: remove the Redis container: %w", err)
		}
		return nil
	}
	if err == nil {
		url, err = containerURL(ctx, container)
	}
	if err != nil {
		err = fmt.Errorf("redistest: run a Redis container of %s (%s names another image): %w", image, imageVariable, err)
		return "", nil, errors.Join(err, stop())
	}
	return url, stop, nil
}

func imageName() string {
	if image := os.Getenv(imageVariable); image != "" {
		return image
	}
	return defaultImage
}

func dockerAnswers() error {
	ctx, cancel := context.WithTimeout(context.Background(), dockerTimeout)
	defer cancel()
	provider, err := testcontainers.NewDockerProvider()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoDocker, err)
	}
	if err := provider.Health(ctx); err != nil { // closes the provider
		return fmt.Errorf("%w: %w", ErrNoDocker, err)
	}
	return nil
}

// containerURL waits until the server in the container takes commands: its port is open as soon as Docker forwards it.
func containerURL(ctx context.Context, container testcontainers.Container) (string, error) {
	addr, err := container.PortEndpoint(ctx, "6379/tcp", "")
	if err != nil {
		return "", fmt.Errorf("find its port: %w", err)
	}
	if !poll(readyTimeout, func() bool { _, ok := ready(addr); return ok }) {
		return "", fmt.Errorf("no Redis answers at %s", addr)
	}
	return "redis://" + addr, nil
}
