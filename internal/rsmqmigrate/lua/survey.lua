-- survey: counts the messages of an RSMQ queue by what would become of them. Changes nothing.
--
-- KEYS 1 Hash     RSMQ: attributes and bodies
-- KEYS 2 Messages RSMQ: zset of message ids
-- ARGV 1 skip int  how many were looked at before
-- ARGV 2 count int how many to look at
-- RETURNS - visible, delayed, in flight, without a body, and whether there are more
-- IDEMPOTENT
-- INCLUDE move

local hash, set = KEYS[1], KEYS[2]
demand(hash, 'hash')
demand(set, 'zset')
local now = now_ms()
local n = {0, 0, 0, 0}
local count = tonumber(ARGV[2])
local rows = redis.call('ZRANGE', set, ARGV[1], ARGV[1] + count - 1, 'WITHSCORES')
for i = 1, #rows, 2 do
  local id, kind = rows[i], 1
  if redis.call('HEXISTS', hash, id) == 0 then
    kind = 4
  elseif tonumber(rows[i + 1]) > now then
    kind = redis.call('HEXISTS', hash, id .. ':rc') == 1 and 3 or 2
  end
  n[kind] = n[kind] + 1
end
return {n[1], n[2], n[3], n[4], #rows / 2 == count and 1 or 0}
