#!/usr/bin/env bash
# Runs the pinned golangci-lint over this module and that of bench/: built once from source, through
# the Go module proxy, into .bin. Where that build fails (no proxy, an older Go
# that may not fetch a newer toolchain), go vet and staticcheck stand in.
# Arguments are passed on, for this module: scripts/lint.sh --fix ./internal/keys/...
set -euo pipefail
cd "$(dirname "$0")/.."

GOLANGCI_VERSION=v2.15.0
# The first of these that the installed Go can build.
STATICCHECK_VERSIONS="v0.8.2 v0.7.0 v0.6.1"

# Builds package $1 into folder $2. The folder names tool and Go version, since a
# linter built with an older Go refuses newer code.
install_tool() {
	local package=$1 dir=$2
	if [ -d "$dir" ]; then return 0; fi
	echo "lint: building $package into $dir (minutes the first time)" >&2
	rm -rf "$dir.partial"
	# GOFLAGS is emptied: -mod=vendor and the like would refuse package@version.
	GOFLAGS='' CGO_ENABLED=0 GOBIN="$PWD/$dir.partial" go install "$package" 2>&1 |
		sed '/^go: downloading /d' >&2 || return 1
	mv "$dir.partial" "$dir"
}

go_version=$(go env GOVERSION)

golangci_dir=.bin/golangci-lint-$GOLANGCI_VERSION-$go_version
if install_tool "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$GOLANGCI_VERSION" "$golangci_dir"; then
	linter=("$PWD/$golangci_dir/golangci-lint" run --allow-parallel-runners --config "$PWD/.golangci.yml")
	if [ $# -gt 0 ]; then exec "${linter[@]}" "$@"; fi
	"${linter[@]}" ./...
	cd bench
	exec "${linter[@]}" ./...
fi

cat >&2 <<BANNER
==============================================================================
lint: golangci-lint $GOLANGCI_VERSION could not be built (see above).
lint: REDUCED LINT: go vet and staticcheck only, .golangci.yml is not applied.
lint: Remedy: reach a Go module proxy, and use Go 1.26 or GOTOOLCHAIN=auto.
==============================================================================
BANNER

packages=()
for argument in "$@"; do
	case $argument in
	-*) echo "lint: $argument is for golangci-lint alone, left out" >&2 ;;
	*) packages+=("$argument") ;;
	esac
done

for version in $STATICCHECK_VERSIONS; do
	dir=.bin/staticcheck-$version-$go_version
	if install_tool "honnef.co/go/tools/cmd/staticcheck@$version" "$dir"; then
		staticcheck=$PWD/$dir/staticcheck
		if [ ${#packages[@]} -eq 0 ]; then
			go vet ./...
			"$staticcheck" ./...
			cd bench
			packages=(./...)
		fi
		go vet "${packages[@]}"
		exec "$staticcheck" "${packages[@]}"
	fi
done
echo "lint: staticcheck could not be built either: the code was not linted" >&2
exit 1
