-- attributes: what is known of a queue.
--
-- INCLUDE queue

local function attributes(hash, set, pinned)
  local a = redis.call('HMGET', hash, 'vt', 'delay', 'maxsize', 'totalrecv', 'totalsent', 'created', 'modified')
  if not a[1] then
    return {}
  end
  local s, us = clock(pinned)
  a[8] = redis.call('ZCARD', set)
  a[9] = redis.call('ZCOUNT', set, whole(s * 1000), '+inf')
  a[10] = redis.call('ZCOUNT', set, '-inf', whole(millis(s, us)))
  return a
end
