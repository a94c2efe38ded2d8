-- drop: deletes a queue with all its messages.
--
-- KEYS 1 Hash     the queue's attributes and bodies
-- KEYS 2 Messages zset of message ids
-- KEYS 3 Queues   set of all queues
-- ARGV 1 name string name of the queue
-- RETURNS - how many of the first two keys there were
-- INCLUDE queue
demand(KEYS[3], 'set')
local found = redis.call('UNLINK', KEYS[1], KEYS[2])
redis.call('SREM', KEYS[3], ARGV[1])
return found
