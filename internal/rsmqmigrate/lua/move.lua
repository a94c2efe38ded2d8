-- move: moves messages of an RSMQ queue to a queue of xstreamq, each in one step: first written there, then deleted here.
--
-- Visible messages go to the stream in the order in which RSMQ would deliver them. Delayed ones keep their time. Those in flight, received and
-- hidden, stay, and so do those without a body.
--
-- KEYS 1 Hash     RSMQ: attributes and bodies
-- KEYS 2 Messages RSMQ: zset of message ids
-- KEYS 3 Queue    xstreamq: stream
-- KEYS 4 Delayed  xstreamq: zset of delayed publishes
-- ARGV 1 skip int how many of the first messages stay: the ones that an earlier call left
-- ARGV 2 count int how many to look at
-- ARGV 3 nonce string makes the ids of delayed messages unique: lower-case hex digits
-- RETURNS - visible ones moved, delayed ones moved, in flight, without a body, and whether there may be more
-- INCLUDE move

local hash, set, queue, delayed = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local skip, count, nonce = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
local BYTES = 1048576

demand(hash, 'hash')
demand(set, 'zset')
demand(queue, 'stream')
demand(delayed, 'zset')

local function pack(list)
  local out = {}
  for i = 1, #list do
    out[i] = #list[i] .. ':' .. list[i]
  end
  return table.concat(out)
end

local now = now_ms()
local moved, later, flying, empty, copied = 0, 0, 0, 0, 0

local function forget(id)
  redis.call('ZREM', set, id)
  redis.call('HDEL', hash, id, id .. ':rc', id .. ':fr')
end

local function schedule(id, body, due)
  local own = 'd' .. whole(due) .. '-' .. nonce .. string.format('%04x', later)
  local list = fields(id, body, nil)
  list[#list + 1] = 'oid'
  list[#list + 1] = own
  list[#list + 1] = 'pub'
  list[#list + 1] = whole(sent_ms(id) or now)
  redis.call('ZADD', delayed, whole(due), own .. '\0' .. pack(list))
  later = later + 1
end

local rows = redis.call('ZRANGE', set, skip, skip + count - 1, 'WITHSCORES')
local looked = 0
for i = 1, #rows, 2 do
  local id, due = rows[i], tonumber(rows[i + 1])
  local found = redis.call('HMGET', hash, id, id .. ':rc')
  local body, rc = found[1], found[2]
  looked = looked + 1
  if not body then
    empty = empty + 1
  elseif due <= now then
    redis.call('XADD', queue, '*', unpack(fields(id, body, rc)))
    forget(id)
    moved = moved + 1
  elseif rc then
    flying = flying + 1
  else
    schedule(id, body, due)
    forget(id)
  end
  copied = copied + (body and #body or 0)
  if copied >= BYTES then
    break
  end
end
local more = looked < #rows / 2 or #rows / 2 == count
return {moved, later, flying, empty, more and 1 or 0}
