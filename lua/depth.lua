-- depth: counts where the messages of a group are, all at one moment.
--
-- No part of it takes longer the more there is. What the server does not know of the undelivered is counted by count.
--
-- KEYS 1 Queue   stream
-- KEYS 2 Delayed zset of delayed publishes
-- KEYS 3 Retry   stream of redeliveries
-- KEYS 4 Backoff zset of messages that wait
-- KEYS 5 DLQ     stream of dead letters
-- ARGV 1 group string      consumer group of Queue
-- ARGV 2 retryGroup string consumer group of Retry
-- RETURNS - server ms, 1 if the group is on Queue; of Queue: length, pending, lag as the server says it (-1 = it does not), ids of the
--   last delivered entry, the first, the first undelivered, the last, and the oldest pending one; of Retry: length, pending, id of the
--   first message; counts of Delayed, Backoff and DLQ. Ids are empty where there is none, and where nothing depends on them
-- IDEMPOTENT
-- INCLUDE places

return places(KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], ARGV[1], ARGV[2], nil)
