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
-- INCLUDE clock
-- INCLUDE number

local hash, set = KEYS[1], KEYS[2]
local delay, channel = tonumber(ARGV[2]), ARGV[3]

local queue = redis.call('HMGET', hash, 'vt', 'delay', 'maxsize', 'totalsent')
if not (queue[1] and queue[2] and queue[3]) then
  return {1}
end
if delay == -1 then
  delay = span(queue[2])
end
if not delay or delay < 0 then
  return {2}
end
local limit = integer(queue[3])
if limit == -1 then
  limit = nil
end
for i = 4, #ARGV, 3 do
  local length = tonumber(ARGV[i])
  if length < 0 then
    return {3}
  end
  if limit and length > limit then
    return {4}
  end
end

-- A number to the base 36, in lower case.
local function base36(n)
  local codes, at = {}, 11
  repeat
    local digit = n % 36
    at = at - 1
    codes[at] = digit < 10 and 48 + digit or 87 + digit
    n = (n - digit) / 36
  until n == 0
  return string.char(unpack(codes, at, 10))
end

local s, us = clock(ARGV[1])
local stamp, due = s * 1000000 + us, whole(millis(s, us) + delay)
local sent = counter(queue[4])
if not sent then
  error('ERR a counter of the queue is not an integer', 0)
end
local out, scores, fields = {0}, {}, {}
for i = 4, #ARGV, 3 do
  local id = base36(stamp + #out - 1) .. ARGV[i + 1]
  local n = #scores
  scores[n + 1], scores[n + 2] = due, id
  fields[n + 1], fields[n + 2] = id, ARGV[i + 2]
  out[#out + 1] = id
end
redis.call('ZADD', set, unpack(scores)) -- first: the other key was found to be a hash
redis.call('HSET', hash, 'totalsent', sent + #out - 1, unpack(fields))
if channel ~= '' then
  -- Each message is announced, as if they had been sent one after the other. Best effort: without permission to publish they are there all
  -- the same.
  local before = redis.call('ZCARD', set) - #out + 1
  for i = 1, #out - 1 do
    redis.pcall('PUBLISH', channel, before + i)
  end
end
return out
