-- forget: removes a group with everything that it has.
--
-- What it refuses is decided again here, whatever was seen before. A group with many pending entries is emptied in pages first, and the
-- caller deletes many consumers: to destroy it takes as long as it has of both. The keys are freed in the background.
--
-- KEYS 1 Queue   stream
-- KEYS 2 Retry   stream of redeliveries
-- KEYS 3 Backoff zset of messages that wait
-- KEYS 4 DLQ     stream of dead letters
-- KEYS 5 Done    zset of Dedupe markers
-- KEYS 6 Lock    string: who sweeps now
-- ARGV 1 group string consumer group of Queue
-- ARGV 2 force bool   give up messages that are pending, to be retried or in backoff
-- RETURNS 0 InUse     nothing changed: it holds what may not be lost; then as survey
-- RETURNS 1 Emptying  there is more to give up; call again
-- RETURNS 2 Forgotten it is gone
-- RETURNS 3 Crowded   its consumers are to be deleted first
-- INCLUDE holdings

local queue, retry, backoff, dlq, done = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local group, force = ARGV[1], ARGV[2] == '1'

local PAGE = 1000

local h, wrong = holdings(group, queue, retry, backoff, dlq, done)
if wrong then
  return redis.error_reply(wrong)
end
if h.dead > 0 or not force and h.on_queue + h.on_retry + h.retry + h.backoff > 0 then
  return answer(0, h)
end
probe(queue, group)
local crowded = h.consumers > PAGE
if h.on_queue > PAGE or crowded and h.on_queue > 0 then
  local rows, ids = redis.call('XPENDING', queue, group, '-', '+', PAGE), {}
  for i = 1, #rows do
    ids[i] = rows[i][1]
  end
  redis.call('XACK', queue, group, unpack(ids))
  return answer(1, h)
end
if crowded then
  return answer(3, h)
end
if redis.call('EXISTS', queue) == 1 then
  redis.call('XGROUP', 'DESTROY', queue, group)
end
redis.call('UNLINK', retry, backoff, dlq, done, KEYS[6])
return answer(2, h)
