-- compact: trims what every group has finished with, and never more.
--
-- The bound is the lowest id that some group has not finished: its oldest pending entry, or the last one it was given.
-- Nothing is trimmed without a group, or while a registered one is missing. No lock and no write but XTRIM: it must work
-- when the server is full.
--
-- KEYS 1 Queue stream
-- ARGV 1 retain int       ms that finished entries are kept
-- ARGV 2 limit int        entries to trim at most
-- ARGV 3... groups strings registered groups of the queue
-- RETURNS - how many were trimmed, and what blocks it: empty, "none", or the name of the missing group
-- INCLUDE base

local queue, retain, limit = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])

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

if redis.call('EXISTS', queue) == 0 then
  return {0, ''}
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
  return {0, 'none'}
end
for i = 3, #ARGV do
  if not present[ARGV[i]] then
    return {0, ARGV[i]}
  end
end
if retain > 0 then
  local oldest = whole(math.max(0, now_ms() - retain)) .. '-0'
  if less(oldest, bound) then
    bound = oldest
  end
end
return {redis.call('XTRIM', queue, 'MINID', '~', bound, 'LIMIT', limit), ''}
