-- ack: ends finished messages, and marks them as done.
--
-- KEYS 1 Source stream they were read from
-- KEYS 2 Done   zset of Dedupe markers: original id, expiry in ms
-- ARGV 1 group string  consumer group of Source
-- ARGV 2 ours bool     Source is the retry stream: delete what is ended
-- ARGV 3 keep int      ms that a marker lives; 0 writes none
-- ARGV 4... ids strings two per message: entry id, original id
-- RETURNS - how many were still pending
-- INCLUDE base

local ours = ARGV[2] == '1'
local keep = tonumber(ARGV[3])
if keep > 0 then
  local wrong = mistyped(KEYS[2], 'zset')
  if wrong then
    return redis.error_reply(wrong)
  end
end

local ids = {}
for i = 4, #ARGV, 2 do
  ids[#ids + 1] = ARGV[i]
end
local ended = redis.call('XACK', KEYS[1], ARGV[1], unpack(ids))
if ours then
  redis.call('XDEL', KEYS[1], unpack(ids))
end

if keep > 0 then
  local now = now_ms()
  local marks = {}
  for i = 5, #ARGV, 2 do
    marks[#marks + 1] = whole(now + keep)
    marks[#marks + 1] = ARGV[i]
  end
  redis.call('ZADD', KEYS[2], unpack(marks))
  -- Twice as many as were written: the set shrinks to what is alive, and no call is long.
  local expired = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', whole(now), 'LIMIT', 0, 2 * #ids)
  if #expired > 0 then
    redis.call('ZREM', KEYS[2], unpack(expired))
  end
end
return ended
