-- reap: deletes consumers by name that hold nothing.
--
-- Looked at and deleted in one step: deleting a consumer that holds entries would lose them. One that has come back meanwhile and
-- holds nothing loses nothing either: its next read makes it again.
--
-- KEYS 1 Source stream
-- ARGV 1 group string    consumer group of Source
-- ARGV 2... names strings consumers to delete, 500 at most
-- RETURNS - how many of them held nothing
local source, group = KEYS[1], ARGV[1]
local free = 0
for i = 2, #ARGV do
  if #redis.call('XPENDING', source, group, '-', '+', 1, ARGV[i]) == 0 then
    redis.call('XGROUP', 'DELCONSUMER', source, group, ARGV[i])
    free = free + 1
  end
end
return free
