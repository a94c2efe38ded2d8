-- settle: lets the ids of messages that were copied, and deleted where they came from, be forgotten soon.
--
-- KEYS 1 Migrated zset of the ids that were copied -> ms at which that may be forgotten
-- ARGV 1 keep int how long they are kept on, ms: longer than a copy that was read before may still come
-- ARGV 2... ids strings their ids
-- RETURNS - how many ids are kept
-- IDEMPOTENT
-- INCLUDE base

local migrated = KEYS[1]
local until_ms = whole(now_ms() + tonumber(ARGV[1]))
local scores = {}
for i = 2, #ARGV do
  scores[#scores + 1] = until_ms
  scores[#scores + 1] = ARGV[i]
end
redis.call('ZADD', migrated, 'XX', unpack(scores))
local last = redis.call('ZRANGE', migrated, -1, -1, 'WITHSCORES')
if last[2] then
  redis.call('PEXPIREAT', migrated, whole(tonumber(last[2])))
end
return redis.call('ZCARD', migrated)
