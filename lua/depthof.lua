-- depthof: depth for a group whose state on the queue's stream was read before, which takes long where there are thousands.
--
-- What the group was given meanwhile is counted as backlog, and once more where it is by now. Nothing is missed, since no
-- message goes back to the queue.
--
-- KEYS 1 Queue   stream
-- KEYS 2 Delayed zset of delayed publishes
-- KEYS 3 Retry   stream of redeliveries
-- KEYS 4 Backoff zset of messages that wait
-- KEYS 5 DLQ     stream of dead letters
-- ARGV 1 group string      consumer group of Queue
-- ARGV 2 retryGroup string consumer group of Retry
-- ARGV 3 delivered string  id of the last entry that the group was given
-- ARGV 4 pending int       how many entries it had pending
-- ARGV 5 lag int           its lag; -1: the server does not say
-- RETURNS - as depth
-- IDEMPOTENT
-- INCLUDE places

return places(KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], ARGV[1], ARGV[2], {
  name = ARGV[1], pending = tonumber(ARGV[4]), lag = tonumber(ARGV[5]), ['last-delivered-id'] = ARGV[3],
})
