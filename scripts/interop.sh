#!/usr/bin/env bash
# Runs the RSMQ package beside the Node packages rsmq 0.12.4, rsmq 0.7.2 and rsmq-worker on one Redis: each what the other made, races, kills, and
# random operations under one clock. Arguments are passed on to go test. Exits 3 where there is no Node.
set -euo pipefail
cd "$(dirname "$0")/.."

./scripts/redis.sh
dir=$(./scripts/node.sh)
echo "interop: Node $(node --version), packages of $dir"
XSTREAMQ_NODE_DIR=$dir exec "${GO:-go}" test -tags interop -count=1 -timeout 10m -run '^TestInterop' "$@" ./rsmq
