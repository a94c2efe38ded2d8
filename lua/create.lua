-- create: creates a consumer group on a server that is full, unless it exists.
--
-- A worker must be able to start there: nobody else would trim what fills the server.
--
-- KEYS 1 Source stream to read
-- ARGV 1 group string consumer group
-- ARGV 2 from string  id after which it begins
-- RETURNS - 1 created, 0 it exists
-- INCLUDE base

local wrong = mistyped(KEYS[1], 'stream')
if wrong then
  return redis.error_reply(wrong)
end
probe(KEYS[1], ARGV[1])
local made = redis.pcall('XGROUP', 'CREATE', KEYS[1], ARGV[1], ARGV[2], 'MKSTREAM')
if not made.err then
  return 1
end
if string.find(made.err, 'BUSYGROUP', 1, true) then
  return 0
end
return made
