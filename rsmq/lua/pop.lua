-- pop: delivers visible messages, and deletes them.
--
-- KEYS 1 Hash     the queue's attributes and bodies
-- KEYS 2 Messages zset of message ids
-- ARGV 1 clock string pinned time; empty = the server's
-- ARGV 2 count int    how many at most; fewer when 1 MiB was read
-- RETURNS - as receive does
-- INCLUDE clock
-- INCLUDE deliver

local hash, set = KEYS[1], KEYS[2]

local rows, queue = look(hash, set, ARGV[2])
if not rows then
  return {1, -1}
end
local received = counter(queue[4])
local out, n = deliver(hash, rows, queue, millis(clock(ARGV[1])))
if n == 0 then
  return out
end
local fields, ids = {}, {}
for i = 1, n do
  local id = out[4 * i - 1]
  ids[i] = id
  fields[3 * i - 2], fields[3 * i - 1], fields[3 * i] = id, id .. ':rc', id .. ':fr'
end
redis.call('HSET', hash, 'totalrecv', received + n)
redis.call('HDEL', hash, unpack(fields))
redis.call('ZREM', set, unpack(ids))
return out
