-- fetch: reads messages of an RSMQ queue to be copied elsewhere, and hides them, so that no consumer gets them meanwhile.
--
-- A message that is hidden already, by a run that ended midway or one beside this, is read as well.
--
-- KEYS 1 Hash     RSMQ: attributes and bodies
-- KEYS 2 Messages RSMQ: zset of message ids
-- ARGV 1 skip int how many of the first messages stay: the ones that an earlier call left
-- ARGV 2 count int how many to look at
-- ARGV 3 hidden bool only those that are hidden already
-- RETURNS - in flight, without a body, others that stay, ms until the first of those in flight is visible (-1 = none), whether there may be
--   more, ms of now, then four items per message: id, body, how often it was received, ms at which it is visible
-- INCLUDE base
-- INCLUDE look

local hash, set = KEYS[1], KEYS[2]
local skip, count, only = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3] == '1'
local BYTES = 1048576

demand(hash, 'hash')
demand(set, 'zset')

local now = now_ms()
local n = {flying = 0, empty = 0, other = 0}
local wait, copied, looked = -1, 0, 0
local out = {}
local rows = redis.call('ZRANGE', set, skip, skip + count - 1, 'WITHSCORES')
for i = 1, #rows, 2 do
  local id = rows[i]
  local due, copying = visible_at(rows[i + 1])
  local found = redis.call('HMGET', hash, id, id .. ':rc')
  local body, rc = found[1], found[2]
  local is = kind(body, rc, due, now, copying)
  if is == 'flying' and wait < 0 then
    wait = math.ceil(due - now)
  end
  if n[is] then
    n[is] = n[is] + 1
  elseif only and not copying then
    n.other = n.other + 1
  else
    if not copying then
      redis.call('ZADD', set, string.format('%.4f', due + HIDDEN + MARK), id)
    end
    local at = #out
    out[at + 1], out[at + 2], out[at + 3], out[at + 4] = id, body, rc or '0', whole(due)
    copied = copied + #body
  end
  looked = looked + 1
  if copied >= BYTES then
    break
  end
end
local more = looked < #rows / 2 or #rows / 2 == count
return {n.flying, n.empty, n.other, wait, more and 1 or 0, whole(now), unpack(out)}
