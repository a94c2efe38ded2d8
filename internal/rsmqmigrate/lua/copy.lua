-- copy: writes messages that were read elsewhere to a queue of xstreamq, and notes their ids, so that none is written twice.
--
-- KEYS 1 Queue    xstreamq: stream
-- KEYS 2 Delayed  xstreamq: zset of delayed publishes
-- KEYS 3 Migrated zset of the ids that were copied -> ms at which that may be forgotten
-- ARGV 1 read int when they were read, ms
-- ARGV 2 fresh int how long ago that may be, ms
-- ARGV 3 keep int how long their ids are kept, ms
-- ARGV 4 nonce string makes the ids of delayed messages unique: lower-case hex digits
-- ARGV 5... messages strings four per message: id, body, how often it was received, ms at which it is visible
-- RETURNS 0 Stale  nothing was written: they were read too long ago
-- RETURNS 1 Copied they are there
-- INCLUDE base
-- INCLUDE write

local queue, delayed, migrated = KEYS[1], KEYS[2], KEYS[3]
local keep, nonce = tonumber(ARGV[3]), ARGV[4]

demand(queue, 'stream')
demand(delayed, 'zset')
demand(migrated, 'zset')

local now = now_ms()
if math.abs(now - tonumber(ARGV[1])) > tonumber(ARGV[2]) then
  return 0
end
redis.call('ZREMRANGEBYSCORE', migrated, '-inf', whole(now))
for i = 5, #ARGV, 4 do
  local id = ARGV[i]
  if not redis.call('ZSCORE', migrated, id) then
    write(queue, delayed, now, id, ARGV[i + 1], ARGV[i + 2], tonumber(ARGV[i + 3]), nonce .. string.format('%04x', i))
    redis.call('ZADD', migrated, whole(now + keep), id)
  end
end
redis.call('PEXPIREAT', migrated, whole(now + keep))
return 1
