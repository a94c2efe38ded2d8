-- receive: delivers visible messages, and hides them.
--
-- KEYS 1 Hash     the queue's attributes and bodies
-- KEYS 2 Messages zset of message ids
-- ARGV 1 clock string pinned time; empty = the server's
-- ARGV 2 vt int       ms that they are hidden; -1 = as the queue says; -2 = one that is out of range
-- ARGV 3 count int    how many at most; fewer when 1 MiB was read
-- RETURNS - the status, ms until the next one is visible (-1 = not known), then four items per message: id, body (nil = it has none), how often it
--   was received, ms of the first time (empty = not known)
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
local stamp, hidden = whole(now), whole(now + vt)
local out, n, read = {0, -1}, 0, 0
local body, rc, first = queue[5], queue[6], queue[7]
for i = 1, #rows, 2 do
  local id, due = rows[i], tonumber(rows[i + 1])
  if due > now then
    out[2] = math.ceil(due - now)
    break
  end
  if i > 1 then
    local found = redis.call('HMGET', hash, id, id .. ':rc', id .. ':fr')
    body, rc, first = found[1], found[2], found[3]
  end
  rc = counter(rc)
  if not rc or read >= BYTES then
    break -- the next call begins with this one
  end
  rc = rc + 1
  if rc == 1 then
    first = stamp
    redis.call('HSET', hash, id .. ':rc', '1', id .. ':fr', first)
  else
    redis.call('HSET', hash, id .. ':rc', rc)
  end
  redis.call('ZADD', set, hidden, id)
  out[2 * i + 1], out[2 * i + 2], out[2 * i + 3], out[2 * i + 4] = id, body, rc, first or ''
  n, read = n + 1, read + (body and #body or 0)
end
if n > 0 then
  redis.call('HINCRBY', hash, 'totalrecv', n)
end
return out
