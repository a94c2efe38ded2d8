package main

import (
	"strings"
	"testing"
)

// All mistakes are told at once, each with what to use instead, before anything is started.
func TestChaosFlags(t *testing.T) {
	t.Parallel()
	for args, wants := range map[string][]string{
		"chaos --aof maybe --messages 0 --rate -1 --body 1 --connections 0 --workers 0 --groups 9 --concurrency -1 --failure-rate 2 " +
			"--max-retries 15 --max-lost-leases 0 --visibility 1ms --backoff 0s --handler -1s --kill-interval -1s --window 0s --html /nowhere/at/all": {
			`--aof "maybe"`, "--messages 0", "--rate -1", "--body 1: use 24", "--connections 0", "--workers 0: use 1", "--groups 9", "--concurrency -1",
			"--failure-rate 2", "--max-retries 15: use 0 to 14", "--max-lost-leases 0", "--visibility 1ms", "--backoff 0s", "--handler", "interval cannot",
			"--window 0s", "no folder /nowhere/at",
		},
		"chaos --url redis://localhost:1 --redis-faults 1s --aof always": {"--aof is for a server of its own", "--redis-faults is for a server of its own"},
		"chaos --aof off --redis-faults 1s":                              {"would lose everything"},
		"soak --duration 1s":                                             {"--duration: use 10s or more"},
		"soak --rate 0":                                                  {"--rate: use more than 0"},
		"soak --rate NaN":                                                {"--rate: use more than 0"},
		"chaos --window 1m --max-repeats -1 --prefetch -2 --visibility 2h": {"--window 1m0s: use", "--max-repeats -1", "--prefetch -2", "--visibility 2h"},
		"chaos --messages 20000000 --groups 2":                             {"--messages 20000000 for 2 groups"},
		"chaos --url redis://:hidden@127.0.0.1:1":                          {"--url: the server does not answer"},
		"chaos --url redis://:hidden@127.0.0.1:1/x":                        {"--url: the database of the Redis URL is no number"},
		"chaos --journal .":                                                {". is not empty", "name another"},
		"soak --workers 1":                                                 {"--workers 1: use 2"},
		"chaos extra":                                                      {"unknown command"},
	} {
		root := newRootCommand()
		root.SetArgs(strings.Fields(args))
		err := root.ExecuteContext(t.Context())
		if err == nil {
			t.Errorf("%s was accepted", args)
			continue
		}
		if strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s shows the password: %v", args, err)
		}
		for _, want := range wants {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: no %q in\n%v", args, want, err)
			}
		}
	}
}

func TestDedupeFlagHasAValueOfItsOwn(t *testing.T) {
	t.Parallel()
	for arg, want := range map[string]string{"": "0s", "--dedupe": "10m0s", "--dedupe=1h": "1h0m0s"} {
		cmd := newChaosCommand()
		if err := cmd.ParseFlags(strings.Fields(arg)); err != nil {
			t.Fatal(err)
		}
		if got := cmd.Flag("dedupe").Value.String(); got != want {
			t.Errorf("%q is %s, want %s", arg, got, want)
		}
	}
}
