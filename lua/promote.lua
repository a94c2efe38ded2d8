-- promote: moves due messages to where they are read.
--
-- Delayed publishes go to the queue, failed messages whose backoff is over to the retry stream; one page of each. A member
-- that cannot be moved is put off for a minute, so that it holds up nobody, and is reported.
--
-- KEYS 1 Delayed zset of delayed publishes
-- KEYS 2 Queue   stream
-- KEYS 3 Backoff zset of the group's waiting messages
-- KEYS 4 Retry   stream of redeliveries
-- ARGV 1 page int members of each zset to look at
-- ARGV 2 cap int  length of Retry at which it takes no more; 0 = none
-- RETURNS - moved to the queue, moved to the retry stream, ms until the next is due (-1 = none), error texts
-- INCLUDE entry
-- INCLUDE retry

local page, cap = tonumber(ARGV[1]), tonumber(ARGV[2])
local now = now_ms()
local errors = {}
local BYTES = 1048576
local next_due = -1

local function move(zset, stream, member, limit)
  local nul = string.find(member, '\0', 1, true)
  local flat = nul and unpack_entry(member, nul + 1)
  if not flat or #flat == 0 or #flat > MAX_ARGS + 100 then
    error('XQBAD a member of ' .. zset .. ' is not a packed entry, or has too many fields', 0)
  end
  room_in(stream, limit, false)
  append(stream, flat)
  redis.call('ZREM', zset, member)
end

local function note(err)
  if #errors < 10 then
    errors[#errors + 1] = text_of(err)
  end
end

local function promote(zset, stream, limit)
  demand(zset, 'zset')
  demand(stream, 'stream')
  local moved, looked, copied, take, more = 0, 0, 0, 1, true
  -- Members hold whole bodies, so they are fetched by their size: first one, then as many as fit into what is left.
  while more and looked < page and copied < BYTES do
    local due = redis.call('ZRANGEBYSCORE', zset, '-inf', whole(now), 'LIMIT', 0, take)
    if #due == 0 then
      break
    end
    if looked == 0 then
      probe(stream, '-')
    end
    for i = 1, #due do
      looked = looked + 1
      copied = copied + #due[i]
      local ok, err = pcall(move, zset, stream, due[i], limit)
      if ok then
        moved = moved + 1
      else
        note(err)
        if not string.find(text_of(err), 'XQBAD', 1, true) then
          more = false
          break
        end
        redis.pcall('ZADD', zset, 'XX', whole(now + 60000), due[i])
      end
    end
    take = math.floor((BYTES - copied) * looked / math.max(copied, 1))
    take = math.max(1, math.min(take, 2 * looked, page - looked))
  end
  if copied >= BYTES then
    next_due = 0 -- most likely, and reading one more only to know is dear
    return moved
  end
  local head = redis.call('ZRANGE', zset, 0, 0, 'WITHSCORES')
  if #head == 2 then
    local wait = math.max(0, tonumber(head[2]) - now)
    if next_due < 0 or wait < next_due then
      next_due = wait
    end
  end
  return moved
end

local function guarded(zset, stream, limit)
  local ok, moved = pcall(promote, zset, stream, limit)
  if ok then
    return moved
  end
  note(moved)
  return 0
end

local queued = guarded(KEYS[1], KEYS[2], 0)
local retried = guarded(KEYS[3], KEYS[4], cap)
return {queued, retried, math.ceil(next_due), errors}
