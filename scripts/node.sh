#!/usr/bin/env bash
# Prints a folder whose node_modules hold the Node packages of a folder of the repository (rsmq/testdata/node without an argument): installed
# by npm at their locked versions into the user's cache, once per lock file. Messages go to standard error.
# Exits 3 where there is no Node, 1 where it will not do or npm fails.
set -euo pipefail
cd "$(dirname "$0")/../${1:-rsmq/testdata/node}"

NODE_LEAST=20 # major version

problem() {
	echo "==============================================================================" >&2
	printf 'node.sh: %s\n' "$@" >&2
	echo "==============================================================================" >&2
}

if ! command -v node >/dev/null; then
	problem "NO NODE HERE: install Node $NODE_LEAST or newer, with npm (https://nodejs.org/en/download)"
	exit 3
fi
version=$(node --version)
major=${version#v}
major=${major%%.*}
if [ "$major" -lt "$NODE_LEAST" ]; then
	problem "NODE IS TOO OLD: it is $version; install Node $NODE_LEAST or newer (https://nodejs.org/en/download)"
	exit 1
fi
if ! command -v npm >/dev/null; then
	problem "NO NPM HERE: Node $version is there without it; install npm (https://nodejs.org/en/download)"
	exit 1
fi

lock=$(cksum <package-lock.json)
cache=${XDG_CACHE_HOME:-${HOME:-${TMPDIR:-/tmp}}/.cache}/xstreamq-interop
dir=$cache/${lock%% *}-node$major
if [ ! -d "$dir" ]; then
	echo "node.sh: installing the Node packages into $dir" >&2
	mkdir -p "$cache"
	partial=$(mktemp -d "$cache/partial-XXXXXX")
	trap 'rm -rf "$partial"' EXIT
	cp package.json package-lock.json "$partial"
	# Optional packages are native parsers, which would need a compiler; scripts of packages are not run.
	if ! (cd "$partial" && npm ci --ignore-scripts --omit=optional --no-audit --no-fund --loglevel=error >&2); then
		problem "npm could not install the packages: is there a registry that it can reach?"
		exit 1
	fi
	[ -d "$dir" ] || mv "$partial" "$dir" # another run may have been faster
fi
echo "$dir"
