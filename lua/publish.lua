-- publish: stores messages that are delivered later.
--
-- Each becomes one member of the delayed zset: id, NUL, packed entry, so id, due time and entry cannot part. One write for
-- all of them: either every message is stored or none.
--
-- KEYS 1 Delayed zset of delayed publishes
-- ARGV 1... items strings four per message: "in" or "at", ms from now or since 1970, nonce, packed entry
-- RETURNS - the id of each message
-- INCLUDE base
-- INCLUDE pack

local wrong = mistyped(KEYS[1], 'zset')
if wrong then
  return redis.error_reply(wrong)
end

local now = now_ms()
local ids, add = {}, {}
for i = 1, #ARGV, 4 do
  local due = tonumber(ARGV[i + 1])
  if ARGV[i] == 'in' then
    due = now + due
  end
  local id = 'd' .. whole(due) .. '-' .. ARGV[i + 2]
  ids[#ids + 1] = id
  add[#add + 1] = whole(due)
  add[#add + 1] = id .. '\0' .. ARGV[i + 3] .. pack({'oid', id, 'pub', whole(now)})
end
redis.call('ZADD', KEYS[1], unpack(add))
return ids
