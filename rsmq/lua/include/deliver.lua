-- deliver: looks at the messages that come next. Its calls are few, since every one of them counts.
--
-- INCLUDE number

local BYTES = 1048576 -- of bodies in one answer

-- The next messages: their ids, each followed by the ms at which it is visible, and the queue: vt, delay, maxsize, totalrecv, and then the first of
-- them: body, receive count, first receive. nil if there is no such queue.
local function look(hash, set, count)
  local rows = redis.pcall('ZRANGE', set, 0, count - 1, 'WITHSCORES')
  local id = rows[1] or ''
  local queue = redis.call('HMGET', hash, 'vt', 'delay', 'maxsize', 'totalrecv', id, id .. ':rc', id .. ':fr')
  if not (queue[1] and queue[2] and queue[3]) then
    return nil
  end
  if rows.err then
    error(rows.err, 0)
  end
  if not counter(queue[4]) or id ~= '' and not counter(queue[6]) then
    error('ERR a counter of the queue is not an integer', 0)
  end
  return rows, queue
end
