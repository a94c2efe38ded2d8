package xstreamq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// prepare makes the group exist: registered first, so that compaction waits for it, then on both streams.
func (s *subscription) prepare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	if err := s.register(ctx); err != nil {
		return err
	}
	for _, l := range s.lanes {
		from := Beginning
		if !l.ours {
			from = s.opts.StartFrom
		}
		if err := s.createGroup(ctx, l, from); err != nil {
			return err
		}
	}
	// Redis knows the script of renewals from now on: the first one may fall into a pause, and its second try into the next.
	return runExtend(ctx, s.client.redis, s.queueLane.keys, extendArgs{Group: s.queueLane.group, Consumer: s.consumer, Mode: modeCheck}).Error()
}

// prepareUntil tries to prepare until ctx ends, or an error comes that waiting will not cure.
func (s *subscription) prepareUntil(ctx context.Context) error {
	wait := 50 * time.Millisecond
	var said error // the last thing that was in the way, before the time ran out
	for {
		err := s.prepare(ctx)
		if err == nil {
			s.mu.Lock()
			s.prepared = true
			s.mu.Unlock()
			return nil
		}
		err = fmt.Errorf("queue %q, group %q: %w", s.queue, s.group, err)
		if permanent(err) {
			return err
		}
		if ctx.Err() != nil && said != nil {
			return errors.Join(said, context.Cause(ctx))
		}
		said = err
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return errors.Join(err, context.Cause(ctx))
		}
		wait = min(2*wait, time.Second)
	}
}

// prepareForever is for a client that runs already: also a wrong type or a missing permission may be mended.
func (s *subscription) prepareForever(ctx context.Context) error {
	for {
		err := s.prepareUntil(ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
		s.log.Error("subscription cannot begin, trying again", "error", err)
		timer := time.NewTimer(time.Second)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}

// createGroup creates a lane's consumer group; one that exists is left as it is.
func (s *subscription) createGroup(ctx context.Context, l *lane, from StartFrom) error {
	rc := s.client.redis
	cmd := rc.B().XgroupCreate().Key(l.keys.Source).Group(l.group).Id(string(from)).Mkstream().Build()
	err := rc.Do(ctx, cmd).Error()
	switch redisCode(err) {
	case "BUSYGROUP":
		return nil
	case "OOM": // said even when the group exists
		err = runCreate(ctx, rc, l.keys, createArgs{Group: l.group, From: string(from)}).Error()
	}
	if err != nil {
		return fmt.Errorf("creating the group on %s: %w", l.keys.Source, err)
	}
	return nil
}

// repair brings back a group that Redis lost. It begins at 0 whatever StartFrom says: any later id could skip what another
// worker held. Finished entries that were not trimmed yet come again.
func (s *subscription) repair(ctx context.Context, l *lane) error {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	if err := s.createGroup(ctx, l, Beginning); err != nil {
		return err
	}
	s.log.Warn("the consumer group was gone and is created again; finished messages may come again", "stream", l.keys.Source)
	return s.register(ctx)
}

// registration is what the registry says about a group, besides first_seen and last_seen.
type registration struct {
	Queue         string `json:"queue"`
	Group         string `json:"group"`
	VisibilityMs  int64  `json:"visibility_ms"`
	MaxRetries    int64  `json:"max_retries"`
	MaxLostLeases int64  `json:"max_lost_leases"`
	DedupeMs      int64  `json:"dedupe_ms"`
}

func (s *subscription) register(ctx context.Context) error {
	r := registration{
		Queue: s.queue, Group: s.group,
		MaxRetries: budget(s.opts.MaxRetries), MaxLostLeases: budget(s.opts.MaxLostLeases),
		DedupeMs: ceilMillis(s.opts.Dedupe),
	}
	if !s.opts.NoVisibilityTimeout {
		r.VisibilityMs = ceilMillis(s.opts.VisibilityTimeout)
	}
	about, err := json.Marshal(r)
	if err != nil {
		return err
	}
	err = runRegister(ctx, s.client.redis, s.queueLane.keys, registerArgs{
		Member: s.member(), About: strings.TrimSuffix(string(about), "}"),
	}).Error()
	if err != nil {
		return fmt.Errorf("registering: %w", err)
	}
	return nil
}
