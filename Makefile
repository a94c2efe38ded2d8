# Needs Go and make alone; `make test` finds or installs a Redis itself.

GO           ?= go
TESTFLAGS    ?=
TEST_TIMEOUT ?= 10m
GENERATED    := '*_gen.go' 'docs/cli/*.md'

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z\/-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

.PHONY: test
test: ## Run all tests against a real Redis (TESTFLAGS=-short leaves out the long ones)
	@./scripts/redis.sh
	$(GO) test -timeout $(TEST_TIMEOUT) $(TESTFLAGS) ./...
	cd bench && $(GO) test -timeout $(TEST_TIMEOUT) $(TESTFLAGS) ./...

.PHONY: test/race
test/race: ## Run all tests under the race detector (needs a C compiler)
	@./scripts/redis.sh
	GORACE=atexit_sleep_ms=0 CGO_ENABLED=1 $(GO) test -race -timeout $(TEST_TIMEOUT) $(TESTFLAGS) ./...

.PHONY: lint
lint: ## Run the linters of .golangci.yml (the first run builds them into .bin)
	@./scripts/lint.sh

.PHONY: interop
interop: ## Run the RSMQ package beside the Node packages on one Redis (needs Node 20 and npm)
	@GO=$(GO) ./scripts/interop.sh

.PHONY: bench
bench: ## Compare the engine with bare rueidis loops, and RSMQ with its Node package where there is Node
	@./scripts/redis.sh
	@XSTREAMQ_NODE_DIR=$$(./scripts/node.sh || true) $(GO) run ./internal/enginebench

.PHONY: bench-peers
bench-peers: ## Compare with other queues on Redis, in under 25 minutes (QUICK=1: under 6); ARGS='--json FILE'
	@./scripts/redis.sh
	@dir=$$(./scripts/node.sh bench/node) || echo "bench-peers: THE SYSTEMS OF NODE ARE LEFT OUT" >&2; \
	cd bench && XSTREAMQ_NODE_DIR=$$dir $(GO) run . $(if $(QUICK),--quick) $(ARGS)

.PHONY: generate
generate: ## Rewrite the Go code made from lua/, and docs/cli made from the commands
	$(GO) generate ./...

.PHONY: verify
verify: generate ## Check that generated code, go.mod and formatting are as committed, and vet
	git diff --exit-code -- $(GENERATED)
	@new=$$(git ls-files --others --exclude-standard -- $(GENERATED)); test -z "$$new" || { echo "generated, not committed:"; echo "$$new"; exit 1; } >&2
	$(GO) mod tidy -diff
	cd bench && $(GO) mod tidy -diff && $(GO) vet ./...
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "run gofmt -w on:"; echo "$$unformatted"; exit 1; } >&2
	$(GO) vet ./...

.PHONY: demo
demo: ## Run the demonstration on real webhook payloads (needs no Redis)
	$(GO) run ./cmd/xstreamq demo
