-- find: says which of some messages are still on their way to a handler of their group, or held by one.
--
-- Such a message is on the retry stream, which holds nothing else, or waits out a backoff. Both are read in pages: first the
-- retry stream; the call that reaches its end goes on at the head of the backoff set, so that the two meet at one moment.
--
-- KEYS 1 Retry   stream of redeliveries
-- KEYS 2 Backoff zset of messages that wait
-- ARGV 1 from string    id from which the retry stream is read; empty = its end was reached before
-- ARGV 2 due string     score from which the backoff set is read; -inf = its head
-- ARGV 3 skip int       how many members of just that score were looked at before
-- ARGV 4... ids strings original ids
-- RETURNS - server ms, last entry of the retry stream that was looked at (empty = none), 1 when its end is reached, score and
--   skip to go on from (empty = the end of the backoff set), then for each message found its original id and that of its
--   entry (empty = it waits)
-- IDEMPOTENT
-- INCLUDE base

local retry, backoff = KEYS[1], KEYS[2]
local from, due, skip = ARGV[1], ARGV[2], tonumber(ARGV[3])

local wrong = mistyped(retry, 'stream') or mistyped(backoff, 'zset')
if wrong then
  return redis.error_reply(wrong)
end

local ITEMS, BYTES = 500, 524288 -- of each of the two

local sought, left, found = {}, 0, {}
for i = 4, #ARGV do
  if not sought[ARGV[i]] then
    sought[ARGV[i]] = true
    left = left + 1
  end
end

local function note(id, at)
  if sought[id] then
    sought[id] = nil
    left = left - 1
    found[#found + 1] = id
    found[#found + 1] = at
  end
end

-- Bodies come along, so pages go by their size.
local function next_page(looked, copied)
  local fit = math.floor((BYTES - copied) * looked / math.max(copied, 1))
  return math.max(1, math.min(fit, 4 * looked, ITEMS - looked))
end

local function read_retry()
  local looked, copied, take, last, again = 0, 0, 4, '', 0
  while left > 0 and looked < ITEMS and copied < BYTES do
    -- Each page begins with the last entry of the one before: not every server knows how to leave it out.
    local entries = redis.call('XRANGE', retry, from, '+', 'COUNT', take + again)
    for i = 1 + again, #entries do
      local id, flat = entries[i][1], entries[i][2]
      local original = id
      for j = 1, #flat, 2 do
        copied = copied + #flat[j] + #flat[j + 1]
        if flat[j] == 'oid' then
          original = flat[j + 1]
        end
      end
      note(original, id)
      last, looked = id, looked + 1
    end
    if #entries < take + again then
      return last, 1
    end
    from, again, take = last, 1, next_page(looked, copied)
  end
  return last, 0
end

local function read_backoff()
  local looked, copied, take = 0, 0, 4
  while left > 0 and looked < ITEMS and copied < BYTES do
    local rows = redis.call('ZRANGEBYSCORE', backoff, due, '+inf', 'WITHSCORES', 'LIMIT', skip, take)
    for i = 1, #rows, 2 do
      local member, score = rows[i], rows[i + 1]
      local nul = string.find(member, '\0', 1, true)
      note(string.sub(member, 1, (nul or 1) - 1), '')
      looked, copied = looked + 1, copied + #member
      if score == due then
        skip = skip + 1
      else
        due, skip = score, 1
      end
    end
    if #rows < 2 * take then
      due, skip = '', 0
      return
    end
    take = next_page(looked, copied)
  end
end

local now, last, ended = now_ms(), '', 1
if from ~= '' then
  last, ended = read_retry()
end
if ended == 1 then
  read_backoff()
end
local out = {now, last, ended, due, skip}
for i = 1, #found do
  out[#out + 1] = found[i]
end
return out
