-- receive: delivers visible messages, and hides them.
--
-- KEYS 1 Hash     the queue's attributes and bodies
-- KEYS 2 Messages zset of message ids
-- ARGV 1 clock string pinned time; empty = the server's
-- ARGV 2 vt int       ms that they are hidden; -1 = as the queue says; -2 = one that is out of range
-- ARGV 3 count int    how many at most; fewer when 1 MiB was read
-- RETURNS - the status, ms until the next one is visible (-1 = none), then four items per message: id, body (nil = it has none), how often it was
--   received, ms of the first time (empty = not known)
-- INCLUDE queue
-- INCLUDE deliver

local hash, set = KEYS[1], KEYS[2]
local vt, count = tonumber(ARGV[2]), tonumber(ARGV[3])

local queue = lookup(hash)
if not queue then
  return {1, -1}
end
if vt == -1 then
  vt = span(queue.vt)
end
if not vt or vt < 0 then
  return {2, -1}
end

local now = millis(clock(ARGV[1]))
local out, read = {0, -1}, 0
local ids = visible(set, now, count)
for i = 1, #ids do
  -- First what can fail: a counter that is no number must not hide the message.
  local body, rc, first = receive(hash, ids[i], now, true)
  redis.call('ZADD', set, whole(now + vt), ids[i])
  local n = #out
  out[n + 1], out[n + 2], out[n + 3], out[n + 4] = ids[i], body, rc, first
  read = read + (body and #body or 0)
  if read >= 1048576 then
    break
  end
end
if #ids == 0 then
  local head = redis.call('ZRANGE', set, 0, 0, 'WITHSCORES')
  if head[2] then
    out[2] = math.max(0, math.ceil(tonumber(head[2]) - now))
  end
end
return out
