-- purge: deletes the first messages of a queue, whatever their ids and whoever holds them.
--
-- KEYS 1 Hash     the queue's attributes and bodies
-- KEYS 2 Messages zset of message ids
-- ARGV 1 count int how many at most
-- RETURNS - how many there were; -1 = there is no such queue
local hash, set = KEYS[1], KEYS[2]
local queue = redis.call('HMGET', hash, 'vt', 'delay', 'maxsize')
if not (queue[1] and queue[2] and queue[3]) then
  return -1
end
local ids = redis.call('ZRANGE', set, 0, ARGV[1] - 1)
for i = 1, #ids do
  local id = ids[i]
  redis.call('HDEL', hash, id, id .. ':rc', id .. ':fr')
  redis.call('ZREM', set, id)
end
return #ids
