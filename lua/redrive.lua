-- redrive: gives dead letters to their group again, or publishes them anew.
--
-- Each is copied forward before it is deleted, so it is in one of the two places whatever happens. What it takes is what it
-- gives back, so a full server can be redriven too.
--
-- KEYS 1 DLQ   stream of dead letters
-- KEYS 2 Retry stream of redeliveries
-- KEYS 3 Done  zset of Dedupe markers: a message that was handled once must run again
-- KEYS 4 Queue stream
-- ARGV 1 anew bool      to the queue, as new messages for all groups
-- ARGV 2... ids strings ids of dead letters
-- RETURNS - state and text per id, for the first ids alone when 1 MiB was looked at: 1 redriven and the id of its new entry,
--   0 gone, 2 it stays where it is and why
-- INCLUDE entry

local dlq, retry, done, queue = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local anew = ARGV[1] == '1'
local target = anew and queue or retry

local BYTES = 1048576
local FIELD = 300 -- a name or value counts for that much more: many small ones take as long as a large one

local wrong = mistyped(dlq, 'stream') or mistyped(target, 'stream') or not anew and mistyped(done, 'zset')
if wrong then
  return redis.error_reply(wrong)
end
-- As base.lua says: what refuses a later step refuses now.
redis.call('XDEL', dlq, '0-0')
if not anew then
  redis.call('ZREM', done, '')
end

-- Why a dead letter cannot be redriven, or nil.
local function refusal(e, flat)
  if not e.body then
    local reason
    for i = 1, #flat, 2 do
      reason = flat[i] == 'reason' and flat[i + 1] or reason
    end
    return reason == 'body-lost' and reason or 'no-body'
  end
  if anew then
    for i = 1, #e.fields, 2 do
      if e.fields[i] == 'xq:packed' then
        return 'it has headers in xq:packed, which nobody unpacks on the queue'
      end
    end
    if #e.fields > MAX_ARGS then
      return 'it has too many fields'
    end
  end
end

local looked = 0
local function redrive(id)
  local found = redis.call('XRANGE', dlq, id, id)[1]
  if not found then
    return 0, ''
  end
  local flat = found[2]
  local e = open_entry(id, flat, true)
  looked = looked + e.size + FIELD * #flat
  local why = refusal(e, flat)
  if why then
    return 2, why
  end
  local new
  if anew then
    new = append(queue, e.fields)
  else
    e.rc, e.lc, e.err = 0, 0, nil
    new = to_retry(retry, e)
    redis.call('ZREM', done, e.oid)
  end
  redis.call('XDEL', dlq, id)
  return 1, new
end

local out = {}
for i = 2, #ARGV do
  local ok, state, text = pcall(redrive, ARGV[i])
  if not ok then
    state, text = 2, text_of(state)
    if string.find(text, 'NOPERM', 1, true) or string.find(text, "executing the script can't", 1, true) then
      return redis.error_reply(text) -- as for every other; XADD comes first, so nothing has moved
    end
  end
  out[#out + 1] = state
  out[#out + 1] = text
  if looked >= BYTES then
    break
  end
end
return out
