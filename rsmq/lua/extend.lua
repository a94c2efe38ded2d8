-- extend: sets when a message is visible again.
--
-- KEYS 1 Hash     the queue's attributes and bodies
-- KEYS 2 Messages zset of message ids
-- ARGV 1 clock string pinned time; empty = the server's
-- ARGV 2 id string    of the message
-- ARGV 3 vt int       ms from now
-- RETURNS 0 Unknown  there is no such message
-- RETURNS 1 Extended it was set
-- RETURNS 2 NoQueue  there is no such queue
-- INCLUDE queue
local set, id = KEYS[2], ARGV[2]
if not lookup(KEYS[1]) then
  return 2
end
if not redis.call('ZSCORE', set, id) then
  return 0
end
redis.call('ZADD', set, whole(millis(clock(ARGV[1])) + tonumber(ARGV[3])), id)
return 1
