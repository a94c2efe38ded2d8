-- create: makes a queue.
--
-- Attributes that are there already stay; those that are missing are filled in, also when the queue exists.
--
-- KEYS 1 Hash   the queue's attributes and bodies
-- KEYS 2 Queues set of all queues
-- ARGV 1 clock string   pinned time; empty = the server's
-- ARGV 2 name string    name of the queue
-- ARGV 3 vt int         seconds
-- ARGV 4 delay int      seconds
-- ARGV 5 size int       largest body in UTF-16 code units; -1 = no limit
-- RETURNS 0 Exists  there was one already
-- RETURNS 1 Created it was made
-- INCLUDE queue
local hash, queues = KEYS[1], KEYS[2]
demand(hash, 'hash')
demand(queues, 'set')
local s = whole((clock(ARGV[1])))
local new = redis.call('HSETNX', hash, 'vt', ARGV[3])
redis.call('HSETNX', hash, 'delay', ARGV[4])
redis.call('HSETNX', hash, 'maxsize', ARGV[5])
redis.call('HSETNX', hash, 'created', s)
redis.call('HSETNX', hash, 'modified', s)
if new == 1 then
  redis.call('SADD', queues, ARGV[2])
end
return new
