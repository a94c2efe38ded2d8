-- forget: deletes messages of RSMQ that were copied.
--
-- KEYS 1 Hash     RSMQ: attributes and bodies
-- KEYS 2 Messages RSMQ: zset of message ids
-- ARGV 1... ids strings their ids
-- RETURNS - for each: 1 if it was still there, else 0

local hash, set = KEYS[1], KEYS[2]
local out = {}
for i = 1, #ARGV do
  local id = ARGV[i]
  out[i] = redis.call('ZREM', set, id)
  redis.call('HDEL', hash, id, id .. ':rc', id .. ':fr')
end
return out
