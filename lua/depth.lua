-- depth: counts where the messages of a group are, all at one moment.
--
-- No part of it takes longer the more there is. What the server does not know of the undelivered is counted by count.
--
-- KEYS 1 Queue   stream
-- KEYS 2 Delayed zset of delayed publishes
-- KEYS 3 Retry   stream of redeliveries
-- KEYS 4 Backoff zset of messages that wait
-- KEYS 5 DLQ     stream of dead letters
-- ARGV 1 group string      consumer group of Queue
-- ARGV 2 retryGroup string consumer group of Retry
-- RETURNS - server ms, 1 if the group is on Queue; of Queue: length, pending, lag as the server says it (-1 = it does not), ids of the
--   last delivered entry, the first, the first undelivered, the last, and the oldest pending one; of Retry: length, pending, id of the
--   first message; counts of Delayed, Backoff and DLQ. Ids are empty where there is none, and where nothing depends on them
-- IDEMPOTENT
-- INCLUDE base

local queue, retry = KEYS[1], KEYS[3]
local wrong = mistyped(queue, 'stream') or mistyped(KEYS[2], 'zset') or mistyped(retry, 'stream')
  or mistyped(KEYS[4], 'zset') or mistyped(KEYS[5], 'stream')
if wrong then
  return redis.error_reply(wrong)
end

-- What a stream knows of a group; one that is not there has been given nothing.
local function group_of(stream, name)
  if redis.call('EXISTS', stream) == 1 then
    local groups = redis.call('XINFO', 'GROUPS', stream)
    for i = 1, #groups do
      local g = {}
      for j = 1, #groups[i], 2 do
        g[groups[i][j]] = groups[i][j + 1]
      end
      if g.name == name then
        return g
      end
    end
  end
  return {pending = 0, ['last-delivered-id'] = '0-0'}
end

local function id_of(entry)
  return entry and entry[1] or ''
end

-- The id that a message keeps, which tells its age wherever it lies.
local function original(entry)
  local id = id_of(entry)
  local fields = entry and entry[2] or {}
  for i = 1, #fields, 2 do
    if fields[i] == 'oid' then
      id = fields[i + 1]
    end
  end
  return id
end

local g = group_of(queue, ARGV[1])
local delivered = g['last-delivered-id']
local first, newest = '', ''
-- Ranges that leave out their start are not to be had everywhere.
local ahead = redis.call('XRANGE', queue, delivered, '+', 'COUNT', 2)
local undelivered = id_of(ahead[1])
if undelivered == delivered then
  undelivered = id_of(ahead[2])
end
if undelivered ~= '' then
  first = id_of(redis.call('XRANGE', queue, '-', '+', 'COUNT', 1)[1])
  if first ~= undelivered then
    newest = id_of(redis.call('XREVRANGE', queue, '+', '-', 'COUNT', 1)[1])
  end
end
local oldest = g.pending > 0 and id_of(redis.call('XPENDING', queue, ARGV[1], '-', '+', 1)[1]) or ''

return {
  now_ms(), g.name and 1 or 0,
  redis.call('XLEN', queue), g.pending, g.lag or -1, delivered, first, undelivered, newest, oldest,
  redis.call('XLEN', retry), group_of(retry, ARGV[2]).pending, original(redis.call('XRANGE', retry, '-', '+', 'COUNT', 1)[1]),
  redis.call('ZCARD', KEYS[2]), redis.call('ZCARD', KEYS[4]), redis.call('XLEN', KEYS[5]),
}
