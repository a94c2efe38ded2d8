-- count: counts a page of the entries between two ids.
--
-- KEYS 1 Queue stream
-- ARGV 1 from string id of an entry; the count begins after it
-- ARGV 2 to string   last id to count
-- ARGV 3 most int    entries to count
-- RETURNS - 1 if the first entry is there, else 0 and nothing was counted; how many there are; the id to go on from, empty when all are
--   counted. It ends earlier when 1 MiB was looked at
-- IDEMPOTENT
-- INCLUDE base

local queue, to, most = KEYS[1], ARGV[2], tonumber(ARGV[3])
local BYTES = 1048576

local wrong = mistyped(queue, 'stream')
if wrong then
  return redis.error_reply(wrong)
end

local at, seen, copied, take = ARGV[1], 0, 0, 1
while true do
  -- From the last one that was seen: when it is gone, so may be others that were not.
  local found = redis.call('XRANGE', queue, at, to, 'COUNT', take + 1)
  if #found == 0 or found[1][1] ~= at then
    return {0, 0, ''}
  end
  seen = seen + #found - 1
  at = found[#found][1]
  if #found <= take or at == to then
    return {1, seen, ''}
  end
  for i = 1, #found do
    for j = 1, #found[i][2] do
      copied = copied + #found[i][2][j]
    end
  end
  if seen >= most or copied >= BYTES then
    return {1, seen, at}
  end
  take = math.floor((BYTES - copied) * seen / math.max(copied, 1))
  take = math.max(1, math.min(take, 4 * seen, most - seen))
end
