-- attributes: reads a queue's attributes and counts its messages.
--
-- KEYS 1 Hash     the queue's attributes and bodies
-- KEYS 2 Messages zset of message ids
-- ARGV 1 clock string pinned time; empty = the server's
-- RETURNS - nothing for a queue without vt, else: vt, delay, maxsize, totalrecv, totalsent, created, modified as stored, the number of messages,
--   how many are hidden as of the current second, how many are visible now
-- IDEMPOTENT
-- INCLUDE attributes
return attributes(KEYS[1], KEYS[2], ARGV[1])
