-- move: moves messages of an RSMQ queue to a queue of xstreamq, each in one step: first written there, then deleted here.
--
-- Visible messages go to the stream in the order in which RSMQ would deliver them. Delayed ones keep their time. Those in flight, received and
-- hidden, stay, and so do those without a body.
--
-- KEYS 1 Hash     RSMQ: attributes and bodies
-- KEYS 2 Messages RSMQ: zset of message ids
-- KEYS 3 Queue    xstreamq: stream
-- KEYS 4 Delayed  xstreamq: zset of delayed publishes
-- ARGV 1 skip int how many of the first messages stay: the ones that an earlier call left
-- ARGV 2 count int how many to look at
-- ARGV 3 nonce string makes the ids of delayed messages unique: lower-case hex digits
-- RETURNS - visible ones moved, delayed ones moved, in flight, without a body, ms until the first of those in flight is visible (-1 = none), and
--   whether there may be more
-- INCLUDE base
-- INCLUDE look
-- INCLUDE write

local hash, set, queue, delayed = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local skip, count, nonce = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
local BYTES = 1048576

demand(hash, 'hash')
demand(set, 'zset')
demand(queue, 'stream')
demand(delayed, 'zset')

local now = now_ms()
local n = {visible = 0, delayed = 0, flying = 0, empty = 0}
local wait, copied, looked = -1, 0, 0
local rows = redis.call('ZRANGE', set, skip, skip + count - 1, 'WITHSCORES')
for i = 1, #rows, 2 do
  local id = rows[i]
  local due, copying = visible_at(rows[i + 1])
  local found = redis.call('HMGET', hash, id, id .. ':rc')
  local body, rc = found[1], found[2]
  local is = kind(body, rc, due, now, copying)
  n[is] = n[is] + 1
  if is == 'visible' or is == 'delayed' then
    write(queue, delayed, now, id, body, rc or '0', due, nonce .. string.format('%04x', i))
    redis.call('ZREM', set, id)
    redis.call('HDEL', hash, id, id .. ':rc', id .. ':fr')
    copied = copied + #body
  elseif is == 'flying' and wait < 0 then
    wait = math.ceil(due - now)
  end
  looked = looked + 1
  if copied >= BYTES then
    break
  end
end
local more = looked < #rows / 2 or #rows / 2 == count
return {n.visible, n.delayed, n.flying, n.empty, wait, more and 1 or 0}
