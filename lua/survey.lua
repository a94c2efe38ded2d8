-- survey: says what a group holds, before it is forgotten.
--
-- It also writes what changes nothing, so that it fails where the user may not do what forgetting takes.
--
-- KEYS 1 Queue   stream
-- KEYS 2 Retry   stream of redeliveries
-- KEYS 3 Backoff zset of messages that wait
-- KEYS 4 DLQ     stream of dead letters
-- KEYS 5 Done    zset of Dedupe markers
-- KEYS 6 Lock    string: who sweeps now; an optimisation only
-- ARGV 1 group string consumer group of Queue
-- RETURNS 0 Nothing there is nothing of it, but maybe a row in the registry
-- RETURNS 1 Holds   how many messages are pending, to be retried, in backoff, dead
-- INCLUDE holdings

local h, wrong = holdings(ARGV[1], KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5])
if wrong then
  return redis.error_reply(wrong)
end
probe(KEYS[1], ARGV[1])
redis.call('UNLINK', KEYS[6])
if redis.call('EXISTS', KEYS[1]) == 1 then
  redis.call('XGROUP', 'DESTROY', KEYS[1], '\0') -- no group has such a name
end
return answer(h.exists and 1 or 0, h)
