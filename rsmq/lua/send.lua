-- send: stores messages, and tells those who listen.
--
-- Every message is checked before the first one is written. Messages of one call are a microsecond apart, so that they keep their
-- order.
--
-- KEYS 1 Hash     the queue's attributes and bodies
-- KEYS 2 Messages zset of message ids
-- ARGV 1 clock string   pinned time; empty = the server's
-- ARGV 2 delay int      ms; -1 = as the queue says; -2 = one that is out of range
-- ARGV 3 channel string where to announce; empty = nowhere
-- ARGV 4... messages strings three per message: length in UTF-16 code units (-1 = it is no text), random part of its id, body
-- RETURNS - the status, then the id of each message
-- INCLUDE queue

local hash, set = KEYS[1], KEYS[2]
local delay, channel = tonumber(ARGV[2]), ARGV[3]

local queue = lookup(hash)
if not queue then
  return {1}
end
demand(set, 'zset')
if delay == -1 then
  delay = span(queue.delay)
end
if not delay or delay < 0 then
  return {2}
end

local DIGITS = '0123456789abcdefghijklmnopqrstuvwxyz'

local function base36(n)
  local out = ''
  while n > 0 do
    local digit = n % 36
    out = string.sub(DIGITS, digit + 1, digit + 1) .. out
    n = (n - digit) / 36
  end
  return out
end

local limit = integer(queue.maxsize)
for i = 4, #ARGV, 3 do
  local length = tonumber(ARGV[i])
  if length < 0 then
    return {3}
  end
  if limit and limit ~= -1 and length > limit then
    return {4}
  end
end

local s, us = clock(ARGV[1])
local stamp, due = s * 1000000 + us, whole(millis(s, us) + delay)
local out = {0}
redis.call('HINCRBY', hash, 'totalsent', (#ARGV - 3) / 3) -- first, since it can fail
for i = 4, #ARGV, 3 do
  local id = base36(stamp + #out - 1) .. ARGV[i + 1]
  redis.call('ZADD', set, due, id)
  redis.call('HSET', hash, id, ARGV[i + 2])
  out[#out + 1] = id
end
if channel ~= '' then
  -- Best effort: without permission to publish, the message is there all the same.
  redis.pcall('PUBLISH', channel, whole(redis.call('ZCARD', set)))
end
return out
