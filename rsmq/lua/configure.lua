-- configure: changes a queue's attributes, and returns them all.
--
-- KEYS 1 Hash     the queue's attributes and bodies
-- KEYS 2 Messages zset of message ids
-- ARGV 1 clock string pinned time; empty = the server's
-- ARGV 2... changes strings names and values
-- RETURNS - as attributes does
-- INCLUDE queue
-- INCLUDE attributes
local hash = KEYS[1]
if not lookup(hash) then
  return {}
end
demand(KEYS[2], 'zset')
local fields = {'modified', whole((clock(ARGV[1])))}
for i = 2, #ARGV do
  fields[#fields + 1] = ARGV[i]
end
redis.call('HSET', hash, unpack(fields))
return attributes(hash, KEYS[2], ARGV[1])
