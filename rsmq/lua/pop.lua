-- pop: delivers visible messages, and deletes them.
--
-- KEYS 1 Hash     the queue's attributes and bodies
-- KEYS 2 Messages zset of message ids
-- ARGV 1 clock string pinned time; empty = the server's
-- ARGV 2 count int    how many at most; fewer when 1 MiB was read
-- RETURNS - as receive does
-- INCLUDE queue
-- INCLUDE deliver

local hash, set = KEYS[1], KEYS[2]
if not lookup(hash) then
  return {1, -1}
end
local now = millis(clock(ARGV[1]))
local out, read = {0, -1}, 0
local ids = visible(set, now, tonumber(ARGV[2]))
for i = 1, #ids do
  local body, rc, first = receive(hash, ids[i], now, false)
  redis.call('ZREM', set, ids[i])
  redis.call('HDEL', hash, ids[i], ids[i] .. ':rc', ids[i] .. ':fr')
  local n = #out
  out[n + 1], out[n + 2], out[n + 3], out[n + 4] = ids[i], body, rc, first
  read = read + (body and #body or 0)
  if read >= 1048576 then
    break
  end
end
return out
