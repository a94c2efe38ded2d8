-- drop: deletes entries.
-- KEYS 1 DLQ  stream of dead letters
-- ARGV 1... ids strings  entries to delete
return redis.call('XDEL', KEYS[1], unpack(ARGV))
