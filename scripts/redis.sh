#!/usr/bin/env bash
# Makes sure that the tests can get a Redis: finds one, or installs it with the system's package manager.
# Quiet when there is one; exits 1 and names the ways when none can be had.
set -euo pipefail

have() { command -v "$1" >/dev/null 2>&1; }

server_found() { have redis-server || have valkey-server; }

# A Docker client without an engine is no Docker; `docker info` hangs where the engine is stuck.
docker_found() {
	have docker || return 1
	if have timeout; then
		timeout 10 docker info >/dev/null 2>&1
	else
		docker info >/dev/null 2>&1
	fi
}

# install runs the first package manager that is there. Homebrew wants to be an ordinary user, the others root.
install() {
	if have brew && [ "$(id -u)" -ne 0 ]; then
		brew install redis || brew install valkey
		return
	fi
	if [ "$(id -u)" -ne 0 ]; then
		echo "redis.sh: not root, so nothing is installed with the system's package manager" >&2
		return 1
	fi
	if have apt-get; then
		export DEBIAN_FRONTEND=noninteractive
		apt-get update -q || echo "redis.sh: apt-get update failed; trying with the lists at hand" >&2
		apt-get install -q -y --no-install-recommends redis-server ||
			apt-get install -q -y --no-install-recommends valkey-server
	elif have apk; then
		apk add --no-cache redis || apk add --no-cache valkey
	elif have dnf; then
		dnf install -q -y redis || dnf install -q -y valkey
	else
		echo "redis.sh: none of apt-get, apk, dnf and brew is here" >&2
		return 1
	fi
}

if server_found || docker_found; then
	exit 0
fi
if [ -n "${XSTREAMQ_TEST_REDIS_URL:-}" ]; then
	echo "redis.sh: XSTREAMQ_TEST_REDIS_URL is set; the tests that kill and restart a Redis of their own will fail:" \
		"they need redis-server, valkey-server or Docker" >&2
	exit 0
fi

echo "redis.sh: no redis-server, valkey-server or Docker found; installing Redis" >&2
if install >&2 && server_found; then
	exit 0
fi

cat >&2 <<'MESSAGE'
redis.sh: no Redis to test with, and none could be installed. Any one of these will do:
  - install redis-server or valkey-server, so that it is on PATH
      Debian, Ubuntu: sudo apt-get install redis-server     Fedora: sudo dnf install valkey
      Alpine:         sudo apk add redis                     macOS:  brew install redis
  - start Docker: the tests then run Redis in a container
  - set XSTREAMQ_TEST_REDIS_URL=redis://host:port
Tests that kill and restart a Redis of their own need one of the first two.
MESSAGE
exit 1
