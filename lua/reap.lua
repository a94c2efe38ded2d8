-- reap: deletes consumers that are gone and hold nothing.
--
-- Looked at and deleted in one step: deleting a consumer that holds entries would lose them.
--
-- KEYS 1 Source stream
-- ARGV 1 group string consumer group of Source
-- ARGV 2 idle int     ms without a sign of life
-- ARGV 3 only string  name of the one consumer to look at; empty = all
-- RETURNS - how many were deleted
local deleted = 0
local consumers = redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])
for i = 1, #consumers do
  local c = {}
  for j = 1, #consumers[i], 2 do
    c[consumers[i][j]] = consumers[i][j + 1]
  end
  if c.pending == 0 and c.idle >= tonumber(ARGV[2]) and (ARGV[3] == '' or ARGV[3] == c.name) then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], c.name)
    deleted = deleted + 1
    if deleted >= 500 then
      break
    end
  end
end
return deleted
