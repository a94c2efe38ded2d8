-- delete: deletes messages, whoever holds them.
--
-- KEYS 1 Hash     the queue's attributes and bodies
-- KEYS 2 Messages zset of message ids
-- ARGV 1... ids strings their ids
-- RETURNS - for each: 1 if it was there with its body, else 0; whichever half there was is gone
local hash, set = KEYS[1], KEYS[2]
redis.call('ZCARD', set) -- an error, before the first write, if it is no zset
local out = {}
for i = 1, #ARGV do
  local id = ARGV[i]
  local stored = redis.call('HDEL', hash, id, id .. ':rc', id .. ':fr')
  local listed = redis.call('ZREM', set, id)
  out[i] = (listed == 1 and stored > 0) and 1 or 0
end
return out
