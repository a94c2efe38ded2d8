-- reclaim: moves the messages of one page of pending entries whose lease has run out.
--
-- The lease length is the owner's: consumer names end in ~<ms>, ~0 means no lease. A first loss goes to the retry stream at
-- once; from the second on it waits, so that messages lost together part. A delivery count of 0 marks a release.
--
-- Nothing moves when the server's clock is further from what the sweeper last saw than an interval and a third of the
-- lease: after a pause or a clock step the living renew first. The sweep that follows says since when they could: it moves
-- what nobody renewed since then, whatever the clock says, or a sweeper that is always late would hold back for ever.
--
-- KEYS 1 Source  stream of the pending entries
-- KEYS 2 Retry   stream of redeliveries
-- KEYS 3 Backoff zset of messages that wait
-- KEYS 4 DLQ     stream of dead letters
-- KEYS 5 Lock    string: who sweeps now; an optimisation only
-- ARGV 1 group string    consumer group of Source
-- ARGV 2 ours bool       Source is the retry stream
-- ARGV 3 start string    first id of the page; - = a new sweep, which needs the lock
-- ARGV 4 last int        server ms the sweeper saw before; 0 = never, only look at the clock
-- ARGV 5 interval int    ms the sweeper meant to wait since then
-- ARGV 6 since int       server ms since when the living could renew; 0 = go by the clock
-- ARGV 7 lease int       ms of a lease whose owner does not say
-- ARGV 8 budget int      lost leases allowed; -1 = without end
-- ARGV 9 cap int         length of Retry at which it takes no more; 0 = none
-- ARGV 10 seed int       seed of the jitter
-- ARGV 11... delays strings ms to wait after the second, third, ... loss; the last serves for all later ones
-- RETURNS 0 Taken another sweeper is at it
-- RETURNS 1 Swept the page was looked at: then server ms, id to resume after (empty = the end), moved to retry, to backoff,
--   released, held back, dead letters as "id reason", error texts
-- RETURNS 2 Clock the sweeper knew no time yet
-- INCLUDE entry
-- INCLUDE retry

local source, retry, backoff, dlq, lock = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local group, ours, start = ARGV[1], ARGV[2] == '1', ARGV[3]
local last, interval, since = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local lease, budget, cap = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
math.randomseed(tonumber(ARGV[10]))

local ROWS, MOVES, BYTES = 500, 200, 1048576

local now = now_ms()
if last == 0 then
  return {2, now}
end

-- Whether another sweeper is at it. An error, such as OOM, is no reason not to sweep; nor is a lock that outlives every
-- sweep, because somebody set it by hand or the server's clock went back.
local function taken()
  local ttl = whole(math.max(1, interval * 0.8))
  if redis.pcall('SET', lock, '1', 'NX', 'PX', ttl) then
    return false
  end
  local left = redis.pcall('PTTL', lock) -- an error where it is not permitted
  if type(left) == 'table' or left >= 0 and left <= math.max(60000, lease) then
    return true
  end
  redis.pcall('SET', lock, '1', 'PX', ttl)
  return false
end

if start == '-' and taken() then
  return {0, now}
end
local gap = math.abs(now - last)

-- Whether a living owner would have renewed by now.
local function vanished(idle, term)
  if since > 0 then
    return idle >= math.abs(now - since)
  end
  return gap <= interval + term / 3
end

local n = {retry = 0, backoff = 0, released = 0, held_back = 0}
local dead, errors, copied, probed = {}, {}, 0, false

local function owner_lease(consumer)
  local ms = string.match(consumer, '~(%d+)$')
  return ms and tonumber(ms) or lease
end

local function bury(e, reason, id, consumer)
  demand(dlq, 'stream')
  dead[#dead + 1] = to_dlq(dlq, e, reason, now, id, consumer) .. ' ' .. reason
end

local function wait_after(lost)
  local i = math.min(lost - 1, #ARGV - 10)
  local delay = i > 0 and tonumber(ARGV[10 + i]) or 1000
  return math.floor(delay * (0.5 + 0.5 * math.random()))
end

local function lose(e, id, consumer)
  e.lc = e.lc + 1
  e.err = 'lease lost by ' .. consumer
  if budget >= 0 and e.lc > budget then
    bury(e, 'lost-lease', id, consumer)
  elseif e.lc == 1 then
    demand(retry, 'stream')
    room_in(retry, cap, ours)
    to_retry(retry, e)
    n.retry = n.retry + 1
  else
    demand(backoff, 'zset')
    to_backoff(backoff, e, now + wait_after(e.lc), id)
    n.backoff = n.backoff + 1
  end
end

local function move(id, consumer, deliveries)
  if not probed then
    probe(source, group)
    probed = true
  end
  local found = redis.call('XRANGE', source, id, id)[1]
  if not found or not found[2] then
    bury(open_entry(id, {}, false), 'body-lost', id, consumer)
  else
    local e = open_entry(id, found[2], ours)
    copied = copied + e.size
    if not e.body then
      bury(e, 'no-body', id, consumer)
    elseif deliveries == 0 then
      demand(retry, 'stream')
      room_in(retry, cap, ours)
      to_retry(retry, e)
      n.released = n.released + 1
    else
      lose(e, id, consumer)
    end
  end
  finish(source, group, id, ours)
end

local rows = redis.call('XPENDING', source, group, start, '+', ROWS)
local at, moved = 0, 0
for i = 1, #rows do
  local id, consumer, idle, deliveries = rows[i][1], rows[i][2], rows[i][3], rows[i][4]
  local term = owner_lease(consumer)
  if term > 0 and idle >= term then
    if not vanished(idle, term) then
      n.held_back = n.held_back + 1
    else
      local ok, err = pcall(move, id, consumer, deliveries)
      if not ok and #errors < 10 then
        errors[#errors + 1] = id .. ' ' .. text_of(err)
      end
      moved = moved + 1
    end
  end
  at = i
  if moved >= MOVES or copied >= BYTES then
    break
  end
end

local resume = ''
if at > 0 and (at < #rows or #rows == ROWS) then
  resume = rows[at][1]
end
return {1, now, resume, n.retry, n.backoff, n.released, n.held_back, dead, errors}
