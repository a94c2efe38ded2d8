package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
)

const completionHelp = `Print a script that teaches a shell to complete commands, flags, and the names of queues and groups.
The names are asked of Redis, at the place that --url, --url-file or XSTREAMQ_URL says, and for two
seconds at most: without an answer nothing is completed.`

const completionExample = `  xstreamq completion bash > /etc/bash_completion.d/xstreamq
  xstreamq completion zsh > "${fpath[1]}/_xstreamq"
  xstreamq completion fish > ~/.config/fish/completions/xstreamq.fish
  source <(xstreamq completion bash)`

// completeTimeout is how long somebody who pressed the tab key waits at most.
const completeTimeout = 2 * time.Second

// completeGroups completes QUEUE GROUP from the registry: the first argument with queues, the second with that queue's groups. It
// gives up silently after 2s.
func (a *app) completeGroups(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
	switch len(args) {
	case 0:
		return a.completeQueues(cmd, args, start)
	case 1:
		return a.completions(cmd, start, func(r xstreamq.Registration) (string, bool) { return r.Group, r.Queue == args[0] })
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// completeQueues completes QUEUE alone.
func (a *app) completeQueues(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completions(cmd, start, func(r xstreamq.Registration) (string, bool) { return r.Queue, true })
}

// completions are the names that pick finds in the registry and that begin so.
func (a *app) completions(cmd *cobra.Command, start string, pick func(xstreamq.Registration) (string, bool)) (
	[]string, cobra.ShellCompDirective,
) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completeTimeout)
	defer cancel()
	a.ctx = ctx
	client, err := a.open()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer func() { _ = client.Close() }()
	registered, err := client.Registered(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, r := range registered {
		if name, ok := pick(r); ok && strings.HasPrefix(name, start) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
}
