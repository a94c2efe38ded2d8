-- register: notes in the registry that a group exists, keeping when it was first seen.
--
-- A full server takes no new date for a group that it knows already; that is no error: its workers must be able to trim.
--
-- KEYS 1 Registry hash of all groups
-- ARGV 1 member string queue/group
-- ARGV 2 about string  JSON object of the group, without its closing brace
-- RETURNS - 1
-- INCLUDE base
local now = whole(now_ms())
local old = redis.call('HGET', KEYS[1], ARGV[1])
local first = old and string.match(old, '"first_seen":(%d+)') or now
local noted = redis.pcall('HSET', KEYS[1], ARGV[1], ARGV[2] .. ',"first_seen":' .. first .. ',"last_seen":' .. now .. '}')
if type(noted) == 'table' and not (old and string.find(text_of(noted), 'OOM', 1, true)) then
  return noted
end
return 1
