-- cancel: takes back a delayed publish by its id.
--
-- Members of equal score are in order of their bytes, and begin with their id: it is found by halving among those that are due at the
-- time that its id says, so a call reads few of them. Where these are large it gives up: the caller then looks through the set, which reads
-- no bodies.
--
-- KEYS 1 Delayed zset of delayed publishes
-- ARGV 1 id string d<due ms>-<nonce>
-- RETURNS 1 Cancelled it was there, and is gone
-- RETURNS 0 Unfound   it was not found where it should be
-- INCLUDE base

local delayed, prefix = KEYS[1], ARGV[1] .. '\0'
local wrong = mistyped(delayed, 'zset')
if wrong then
  return redis.error_reply(wrong)
end

-- Whether a member comes before all those of the id. Strings are compared byte by byte: < would go by the server's locale.
local function before(member)
  for i = 1, #prefix do
    local a, b = string.byte(member, i) or -1, string.byte(prefix, i)
    if a ~= b then
      return a < b
    end
  end
  return false
end

local due = string.match(ARGV[1], '^d(%d+)%-')
local high = redis.call('ZCOUNT', delayed, '-inf', due)
local low = high - redis.call('ZCOUNT', delayed, due, due)
local member
local seen = 0
while low < high do
  local middle = math.floor((low + high) / 2)
  local found = redis.call('ZRANGE', delayed, middle, middle)[1]
  seen = seen + #found
  if seen > 2097152 then
    return 0
  end
  if before(found) then
    low = middle + 1
  else
    high, member = middle, found
  end
end
if not member or string.sub(member, 1, #prefix) ~= prefix then
  return 0
end
return redis.call('ZREM', delayed, member)
