-- clear: deletes the stream, and logs `what` it was.
-- KEYS 1 Source  stream to delete
-- RETURNS - number of keys deleted
redis.log(redis.LOG_NOTICE, 'clear `' .. KEYS[1] .. "` -- gone")
return redis.call('DEL', KEYS[1])
