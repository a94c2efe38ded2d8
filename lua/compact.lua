-- compact: trims what every group has finished with, and never more.
--
-- The bound is the lowest id that some group has not finished: its oldest pending entry, or the last one it was given.
-- Nothing is trimmed without a group, or while a registered one is missing. No lock and no write but XTRIM: it must work
-- when the server is full.
--
-- What blocks the server is freeing the nodes of the stream: about a microsecond each, and 0.1 to 0.5 ms per MiB. Redis knows no limit in
-- bytes, so it goes in steps, each as long as the entry behind the one before makes it seem right.
--
-- KEYS 1 Queue stream
-- ARGV 1 retain int       ms that finished entries are kept
-- ARGV 2... groups strings registered groups of the queue
-- RETURNS - how many were trimmed, the name of a missing group or empty, 1 if there is no group at all, 1 if there is more to trim
-- INCLUDE base

local queue, retain = KEYS[1], tonumber(ARGV[1])

-- What one call trims, about.
local ENTRIES, BYTES = 5000, 8 * 1048576

-- Entries of one step, at most. Steps differ in length: where large and small entries take turns, the looks shall meet both.
local STEP = 32

-- The second part may be empty: the embedded server says 0 for 0-0.
local function parts(id)
  local dash = string.find(id, '-', 1, true) or #id + 1
  return string.sub(id, 1, dash - 1), string.sub(id, dash + 1)
end

-- Ids are two decimals of up to 20 digits each: too large for a Lua number.
local function less(a, b)
  local am, as = parts(a)
  local bm, bs = parts(b)
  if am ~= bm then
    return #am < #bm or #am == #bm and am < bm
  end
  return #as < #bs or #as == #bs and as < bs
end

local wrong = mistyped(queue, 'stream')
if wrong then
  return redis.error_reply(wrong)
end
if redis.call('EXISTS', queue) == 0 then
  return {0, '', 0, 0}
end

local bound, present = nil, {}
local groups = redis.call('XINFO', 'GROUPS', queue)
for i = 1, #groups do
  local g = {}
  for j = 1, #groups[i], 2 do
    g[groups[i][j]] = groups[i][j + 1]
  end
  present[g.name] = true
  local lowest = g['last-delivered-id']
  if g.pending > 0 then
    local row = redis.call('XPENDING', queue, g.name, '-', '+', 1)[1]
    if row and less(row[1], lowest) then
      lowest = row[1]
    end
  end
  if not bound or less(lowest, bound) then
    bound = lowest
  end
end
if not bound then
  return {0, '', 1, 0}
end
for i = 2, #ARGV do
  if not present[ARGV[i]] then
    return {0, ARGV[i], 0, 0}
  end
end
if retain > 0 then
  local oldest = whole(math.max(0, now_ms() - retain)) .. '-0'
  if less(oldest, bound) then
    bound = oldest
  end
end

-- Trims about so many entries. Redis removes whole nodes, as long as they hold no more than the limit together: so a first node
-- that holds more is found with little behind it.
local function trim(entries)
  local n = 0
  while n == 0 and entries < 2 * ENTRIES do
    n = redis.call('XTRIM', queue, 'MINID', '~', bound, 'LIMIT', whole(entries))
    entries = entries * 1.5
  end
  return n
end

-- The size of the first entry that is left, 0 without one.
local function first_size()
  local found = redis.call('XRANGE', queue, '-', '+', 'COUNT', 1)[1]
  local size = 0
  for i = 1, #(found and found[2] or {}) do
    size = size + #found[2][i]
  end
  return size
end

local trimmed, freed, step = 0, 0, 8
repeat
  local n = trim(step)
  if n == 0 then
    return {trimmed, '', 0, 0}
  end
  trimmed = trimmed + n
  local size = first_size()
  freed = freed + n * size
  step = math.max(1, math.min(math.random(STEP / 2, STEP), (BYTES - freed) / math.max(1, size)))
until trimmed >= ENTRIES or freed >= BYTES
return {trimmed, '', 0, 1}
