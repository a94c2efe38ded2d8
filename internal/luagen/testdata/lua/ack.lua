-- ack: ends one delivery.
-- KEYS 1 Source  stream it was read from
-- IDEMPOTENT
-- ARGV 1 group string  consumer group
-- ARGV 2 messageId string entry id
return redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
