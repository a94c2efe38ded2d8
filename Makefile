# Needs Go and make alone; `make test` finds or installs a Redis itself.

GO           ?= go
TESTFLAGS    ?=
TEST_TIMEOUT ?= 15m
FUZZTIME     ?= 30s
GENERATED    := '*_gen.go' 'docs/cli/*.md'

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z\/-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

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

.PHONY: chaos
chaos: ## Kill workers for three minutes while messages pass, then hold all that happened against the promises (ARGS='--seed 1')
	@./scripts/redis.sh
	$(GO) run ./loadtest chaos --messages 180000 --rate 1000 --workers 4 --kill-interval 400ms $(ARGS)

.PHONY: chaos-large
chaos-large: ## A million messages with workers killed, again with Dedupe, with Redis killed, with both, and with many failures (about 20 minutes)
	@./scripts/redis.sh
	$(GO) run ./loadtest chaos --messages 1000000 --rate 5000 --workers 6 $(ARGS)
	$(GO) run ./loadtest chaos --messages 1000000 --rate 5000 --workers 6 --dedupe $(ARGS)
	$(GO) run ./loadtest chaos --messages 1000000 --rate 5000 --workers 6 --redis-faults 10s --kill-interval 0 $(ARGS)
	$(GO) run ./loadtest chaos --messages 1000000 --rate 5000 --workers 6 --redis-faults 10s $(ARGS)
	$(GO) run ./loadtest chaos --messages 200000 --rate 3000 --workers 6 --failure-rate 0.25 --max-retries 3 $(ARGS)
	$(GO) run ./loadtest chaos --messages 200000 --rate 3000 --workers 6 --failure-rate 0 --max-retries 1 --kill-interval 250ms $(ARGS)

.PHONY: soak
soak: ## Half an hour of failures, kills and compaction, with an eye on memory (ARGS='--duration 2h')
	@./scripts/redis.sh
	$(GO) run ./loadtest soak --duration 30m $(ARGS)

.PHONY: fuzz
fuzz: ## Fuzz everything that reads what strangers wrote, FUZZTIME=30s each
	@./scripts/redis.sh
	@grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n 1 dirname | sort -u | while read -r dir; do \
		for target in $$(grep -hoE '^func Fuzz[A-Za-z]+' "$$dir"/*_test.go | cut -c 6-); do \
			echo "$$dir $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) "$$dir" || exit 1; \
		done; \
	done

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
