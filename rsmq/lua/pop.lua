-- pop: delivers visible messages, and deletes them.
--
-- KEYS 1 Hash     the queue's attributes and bodies
-- KEYS 2 Messages zset of message ids
-- ARGV 1 clock string pinned time; empty = the server's
-- ARGV 2 count int    how many at most; fewer when 1 MiB was read
-- RETURNS - as receive does
-- INCLUDE clock
-- INCLUDE deliver

local hash, set = KEYS[1], KEYS[2]

local rows, queue = look(hash, set, ARGV[2])
if not rows then
  return {1, -1}
end

local now = millis(clock(ARGV[1]))
local stamp = whole(now)
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
  redis.call('HDEL', hash, id, id .. ':rc', id .. ':fr')
  redis.call('ZREM', set, id)
  out[2 * i + 1], out[2 * i + 2], out[2 * i + 3], out[2 * i + 4] = id, body, rc + 1, rc == 0 and stamp or first or ''
  n, read = n + 1, read + (body and #body or 0)
end
if n > 0 then
  redis.call('HINCRBY', hash, 'totalrecv', n)
end
return out
