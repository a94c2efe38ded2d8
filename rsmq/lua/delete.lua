-- delete: deletes messages, whoever holds them.
--
-- KEYS 1 Hash     the queue's attributes and bodies
-- KEYS 2 Messages zset of message ids
-- ARGV 1... ids strings their ids
-- RETURNS - for each: 1 if it was there with its body, else 0; whichever half there was is gone
-- INCLUDE queue
local hash, set = KEYS[1], KEYS[2]
demand(hash, 'hash')
demand(set, 'zset')
local out = {}
for i = 1, #ARGV do
  local id = ARGV[i]
  local listed = redis.call('ZREM', set, id)
  local stored = redis.call('HDEL', hash, id, id .. ':rc', id .. ':fr')
  out[i] = (listed == 1 and stored > 0) and 1 or 0
end
return out
