-- write: messages of RSMQ as messages of xstreamq.
--
-- INCLUDE base

-- The time of sending that an id begins with, in microseconds, or nil.
local function sent_us(id)
  local head = string.match(string.lower(string.sub(id, 1, 10)), '^[0-9a-z]+')
  local us = 0
  if not head then
    return nil
  end
  for i = 1, #head do
    us = us * 36 + tonumber(string.sub(head, i, i), 36)
  end
  return us
end

-- The fields of a message of xstreamq: its body, and what RSMQ knew of it as headers.
local function fields(id, body, rc, us)
  local out = {'body', body, 'h:rsmq-id', id, 'h:rsmq-rc', rc}
  if us then
    out[7], out[8] = 'h:rsmq-sent', whole(math.floor(us / 1000))
  end
  return out
end

local function pack(list)
  local out = {}
  for i = 1, #list do
    out[i] = #list[i] .. ':' .. list[i]
  end
  return table.concat(out)
end

-- Appends a message to the stream, or where the delayed ones are. Of those with one due time the older comes first, as in RSMQ: the id
-- of a delayed one has its time of sending in hexadecimal digits, before the unique part.
local function write(queue, delayed, now, id, body, rc, due, unique)
  local us = sent_us(id)
  local list = fields(id, body, rc, us)
  if due <= now then
    redis.call('XADD', queue, '*', unpack(list))
    return
  end
  us = us or 0
  local low = us % 2 ^ 28
  local own = 'd' .. whole(due) .. '-' .. string.format('%07x%07x', (us - low) / 2 ^ 28, low) .. unique
  local n = #list
  list[n + 1], list[n + 2], list[n + 3], list[n + 4] = 'oid', own, 'pub', whole(us > 0 and math.floor(us / 1000) or now)
  redis.call('ZADD', delayed, whole(due), own .. '\0' .. pack(list))
end
