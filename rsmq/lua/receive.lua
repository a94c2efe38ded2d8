-- receive: delivers visible messages, and hides them.
--
-- KEYS 1 Hash     the queue's attributes and bodies
-- KEYS 2 Messages zset of message ids
-- ARGV 1 clock string pinned time; empty = the server's
-- ARGV 2 vt int       ms that they are hidden; -1 = as the queue says; -2 = one that is out of range
-- ARGV 3 count int    how many at most; fewer when 1 MiB was read
-- RETURNS - the status, ms until the next one is visible (-1 = not known), then four items per message: id, body (nil = it has none), how often it was
--   received, ms of the first time (empty = not known)
-- INCLUDE clock
-- INCLUDE deliver

local hash, set = KEYS[1], KEYS[2]

local rows, queue = look(hash, set, ARGV[3])
if not rows then
  return {1, -1}
end
local vt = tonumber(ARGV[2])
if vt == -1 then
  vt = span(queue[1])
end
if not vt or vt < 0 then
  return {2, -1}
end

local now = millis(clock(ARGV[1]))
local received = counter(queue[4])
local out, n = deliver(hash, rows, queue, now)
if n == 0 then
  return out
end
local due, fields, scores = whole(now + vt), {}, {}
for i = 1, n do
  local id, rc = out[4 * i - 1], out[4 * i + 1]
  local at = #fields
  fields[at + 1], fields[at + 2] = id .. ':rc', rc
  if rc == 1 then
    fields[at + 3], fields[at + 4] = id .. ':fr', out[4 * i + 2]
  end
  scores[2 * i - 1], scores[2 * i] = due, id
end
redis.call('HSET', hash, 'totalrecv', received + n, unpack(fields))
redis.call('ZADD', set, unpack(scores))
return out
