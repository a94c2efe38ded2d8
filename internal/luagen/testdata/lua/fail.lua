-- fail: writes a failed delivery forward and ends it where it was.
--
-- The copy is written before the entry is acknowledged, so an error half-way
-- leaves the message where it was.
--
-- KEYS 1 Source   stream the delivery was read from
-- KEYS 2 Backoff  zset of the group's messages
--                 that wait out a backoff
-- ARGV 1 group string   consumer group of Source
-- ARGV 2 budget int     failures allowed; -1 = no end
-- ARGV 3 body bytes     payload as the worker holds it
-- ARGV 4 dead bool      true = no retry, whatever the budget
-- ARGV 5... ids strings entries to end
-- RETURNS -1 Gone   not ours any more, nothing changed
-- RETURNS 1 Moved  waits for its retry
-- RETURNS - any other number: how many were moved
-- INCLUDE move
-- INCLUDE clock

local group = ARGV[1] -- the owner's
local budget, body = tonumber(ARGV[2]), ARGV[3]
if ARGV[4] == '1' then budget = 0 end

-- A comment of its own.
for i = 5, #ARGV do
  local ok = move(KEYS[1], KEYS[2], group, ARGV[i], body, now())
  if not ok then return -1 end
end
if budget > 1 then return #ARGV - 4 end
return 1
