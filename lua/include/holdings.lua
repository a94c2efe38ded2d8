-- holdings: what there is of a group.
--
-- INCLUDE base

-- How many entries are pending in a stream's group, and how many consumers it has; nil when there is no such group.
local function pending_in(stream, group)
  if redis.call('EXISTS', stream) == 0 then
    return nil
  end
  local groups = redis.call('XINFO', 'GROUPS', stream) -- XPENDING would count consumer by consumer
  for i = 1, #groups do
    local g = {}
    for j = 1, #groups[i], 2 do
      g[groups[i][j]] = groups[i][j + 1]
    end
    if g.name == group then
      return g.pending, g.consumers
    end
  end
  return nil
end

-- The number of messages in each of a group's places, and whether anything of the group exists; or nil, and which key is of the
-- wrong type.
local function holdings(group, queue, retry, backoff, dlq, done)
  local wrong = mistyped(queue, 'stream') or mistyped(retry, 'stream') or mistyped(backoff, 'zset') or mistyped(dlq, 'stream')
    or mistyped(done, 'zset')
  if wrong then
    return nil, wrong
  end
  local fresh, consumers = pending_in(queue, group)
  local again = pending_in(retry, group .. '-retry') or 0
  local h = {
    on_queue = fresh or 0, on_retry = again, consumers = consumers or 0,
    retry = math.max(0, redis.call('XLEN', retry) - again),
    backoff = redis.call('ZCARD', backoff), dead = redis.call('XLEN', dlq),
  }
  h.exists = fresh or redis.call('EXISTS', retry, backoff, dlq, done) > 0
  return h
end

local function answer(code, h)
  return {code, h.on_queue + h.on_retry, h.retry, h.backoff, h.dead}
end
