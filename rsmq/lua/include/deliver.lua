-- deliver: finds visible messages, and counts that they are delivered. Its calls are few, since every one of them counts.
--
-- INCLUDE number

local BYTES = 1048576 -- of bodies in one answer

-- The next messages at a time: their ids, each followed by the ms at which it is visible, and the queue: vt, delay, maxsize, totalrecv, and then
-- body, receive count and first receive of the first of them. nil if there is no such queue.
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
  return rows, queue
end

-- The messages of rows that are visible now, as an answer: the status, ms until the next one is visible (-1 = not known), then four items per message: id,
-- body (false if it has none), how often it was received, ms of the first time (empty = not known). Besides how many they are. Nothing is written.
local function deliver(hash, rows, queue, now)
  local out, n, read = {0, -1}, 0, 0
  local stamp = whole(now)
  local body, rc, first = queue[5], queue[6], queue[7]
  for i = 1, #rows, 2 do
    local due = tonumber(rows[i + 1])
    if due > now then
      out[2] = math.ceil(due - now)
      break
    end
    if read >= BYTES then
      break
    end
    local id = rows[i]
    if i > 1 then
      local found = redis.call('HMGET', hash, id, id .. ':rc', id .. ':fr')
      body, rc, first = found[1], found[2], found[3]
    end
    rc = counter(rc) + 1
    out[2 * i + 1], out[2 * i + 2], out[2 * i + 3], out[2 * i + 4] = id, body, rc, rc == 1 and stamp or first or ''
    n, read = n + 1, read + (body and #body or 0)
  end
  return out, n
end
