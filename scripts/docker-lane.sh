#!/usr/bin/env bash
# Runs the tests named *Container* with Redis in a container, through testcontainers-go.
#
# It takes the Docker that runs. Where none does and this is root on a Debian-like system, it installs docker.io if
# dockerd is missing, runs a dockerd of its own in a temporary directory and ends it afterwards. That one needs no
# registry: the image is made from the redis-server on PATH and the libraries it is linked with.
# Where no Docker can be had it says so and exits 0: the other tests have covered everything on a local server.
set -euo pipefail
cd "$(dirname "$0")/.."

DEFAULT_IMAGE=redis:7-alpine
LOCAL_IMAGE=xstreamq-redis:local

say() { echo "docker-lane: $*" >&2; }

no_docker() {
	cat >&2 <<BANNER
==============================================================================
docker-lane: NO DOCKER: $1
docker-lane: NO TEST RAN IN A CONTAINER.
==============================================================================
BANNER
	exit 0
}

engine_answers() { timeout 10 docker info >/dev/null 2>&1; }

work=$(mktemp -d)
dockerd_pid=

cleanup() {
	if [ -n "$dockerd_pid" ]; then
		kill "$dockerd_pid" 2>/dev/null || true
		wait "$dockerd_pid" 2>/dev/null || true
		# A container on the host's network leaves this mount behind.
		umount "$work/exec/netns/default" 2>/dev/null || true
	fi
	rm -rf "$work" || say "$work could not be removed"
}
trap cleanup EXIT
trap 'exit 1' INT TERM

install_docker() {
	if command -v dockerd >/dev/null && command -v docker >/dev/null; then return; fi
	if ! command -v apt-get >/dev/null; then
		no_docker "no engine answers, and there is no apt-get to install one with"
	fi
	say "installing docker.io"
	{
		apt-get update -qq || say "apt-get update failed; trying with the lists at hand"
		# Newer releases have the client in a package of its own.
		apt_install docker.io && { command -v docker || apt_install docker-cli; }
	} >"$work/apt" 2>&1 || {
		tail -n 20 "$work/apt" >&2
		no_docker "docker.io could not be installed (the last lines are above)"
	}
}

apt_install() { DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$@"; }

# The engine publishes ports on 127.0.0.1 with its proxy process alone, so it leaves the machine's firewall as it is.
start_engine() {
	export DOCKER_HOST=unix://$work/docker.sock
	dockerd --host "$DOCKER_HOST" --data-root "$work/data" --exec-root "$work/exec" --pidfile "$work/pid" \
		--storage-driver vfs --iptables=false --ip6tables=false --ip-masq=false >"$work/log" 2>&1 &
	dockerd_pid=$!
	for _ in $(seq 60); do
		if engine_answers; then return; fi
		if ! kill -0 "$dockerd_pid" 2>/dev/null; then break; fi
		sleep 0.5
	done
	tail -n 20 "$work/log" >&2
	no_docker "dockerd does not come up here (its last lines are above)"
}

# import_image makes an image of the server on PATH, its libraries and the loader, found by ldd.
import_image() {
	local server files
	server=$(command -v redis-server || command -v valkey-server) ||
		{ say "no redis-server on PATH to make an image of; run scripts/redis.sh first"; exit 1; }
	files=$({ echo "$server"; ldd "$server" | grep -o '/[^ ]*' || true; } | sed 's,^/,,')
	say "making the image $LOCAL_IMAGE from $server"
	tar --create --dereference --directory / --file "$work/image.tar" --verbatim-files-from --files-from <(echo "$files")
	docker import --change 'EXPOSE 6379' --change 'WORKDIR /data' \
		--change "CMD [\"$server\", \"--protected-mode\", \"no\"]" "$work/image.tar" "$LOCAL_IMAGE" >/dev/null
	rm "$work/image.tar"
	export XSTREAMQ_TEST_REDIS_IMAGE=$LOCAL_IMAGE
}

choose_image() {
	if [ -n "${XSTREAMQ_TEST_REDIS_IMAGE:-}" ]; then return; fi
	if [ -z "$dockerd_pid" ]; then
		if docker image inspect "$DEFAULT_IMAGE" >/dev/null 2>&1 || timeout 180 docker pull -q "$DEFAULT_IMAGE" >&2; then
			return
		fi
		say "$DEFAULT_IMAGE cannot be pulled"
	fi
	import_image
}

if command -v docker >/dev/null && engine_answers; then
	say "using the Docker that runs"
elif [ "$(id -u)" -ne 0 ]; then
	no_docker "no engine answers, and only root can start one"
elif [ "$(uname -s)" != Linux ]; then
	no_docker "no engine answers, and dockerd runs on Linux only"
else
	install_docker
	# A package may have started a service.
	engine_answers || start_engine
fi

choose_image
if pgrep -x dockerd >/dev/null 2>&1; then
	# The engine is on this machine, whatever testcontainers concludes from a /.dockerenv that it may find here.
	export TESTCONTAINERS_HOST_OVERRIDE=${TESTCONTAINERS_HOST_OVERRIDE:-127.0.0.1}
fi
if [ -n "$dockerd_pid" ]; then
	export TESTCONTAINERS_RYUK_DISABLED=true # its image is not here; this engine ends with the script
fi

status=0
go test -count=1 -v -run Container ./... >"$work/tests" 2>&1 || status=$?
grep -v -e 'no test files' -e 'no tests to run' -e '^PASS$' "$work/tests" || true
if [ "$status" -ne 0 ]; then exit "$status"; fi
if grep -q 'NO CONTAINER' "$work/tests" || ! grep -q -e '--- PASS: .*Container' "$work/tests"; then
	say "Docker answers, but no test ran in a container"
	exit 1
fi
