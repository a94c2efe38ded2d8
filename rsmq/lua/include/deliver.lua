-- deliver: picks visible messages.
--
-- INCLUDE queue

-- The ids of up to count messages that are visible.
local function visible(set, now, count)
  return redis.call('ZRANGEBYSCORE', set, '-inf', whole(now), 'LIMIT', 0, count)
end

-- Counts one delivery of a message. Returns its body (false if it has none), how often it was received and since when.
local function receive(hash, id, now, keep)
  redis.call('HINCRBY', hash, 'totalrecv', 1)
  local body = redis.call('HGET', hash, id)
  local rc = redis.call('HINCRBY', hash, id .. ':rc', 1)
  local first = whole(now)
  if rc > 1 then
    first = redis.call('HGET', hash, id .. ':fr') or ''
  elseif keep then
    redis.call('HSET', hash, id .. ':fr', first)
  end
  return body, rc, first
end
