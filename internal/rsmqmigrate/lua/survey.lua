-- survey: counts the messages of an RSMQ queue by what would become of them. Changes nothing.
--
-- KEYS 1 Hash     RSMQ: attributes and bodies
-- KEYS 2 Messages RSMQ: zset of message ids
-- ARGV 1 skip int  how many were looked at before
-- ARGV 2 count int how many to look at
-- RETURNS - visible, delayed, in flight, without a body, ms until the first of those in flight is visible (-1 = none), and whether there are more
-- IDEMPOTENT
-- INCLUDE base
-- INCLUDE look

local hash, set = KEYS[1], KEYS[2]
demand(hash, 'hash')
demand(set, 'zset')
local now = now_ms()
local n = {visible = 0, delayed = 0, flying = 0, empty = 0}
local wait, count = -1, tonumber(ARGV[2])
local rows = redis.call('ZRANGE', set, ARGV[1], ARGV[1] + count - 1, 'WITHSCORES')
for i = 1, #rows, 2 do
  local id = rows[i]
  local due, copying = visible_at(rows[i + 1])
  local is = kind(redis.call('HEXISTS', hash, id) == 1, redis.call('HEXISTS', hash, id .. ':rc') == 1, due, now, copying)
  n[is] = n[is] + 1
  if is == 'flying' and wait < 0 then
    wait = math.ceil(due - now)
  end
end
return {n.visible, n.delayed, n.flying, n.empty, wait, #rows / 2 == count and 1 or 0}
