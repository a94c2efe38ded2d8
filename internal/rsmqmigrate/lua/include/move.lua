-- move: reads messages of RSMQ, and writes them as messages of xstreamq.

local function whole(n)
  return string.format('%.0f', n)
end

local function now_ms()
  local t = redis.call('TIME')
  return tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
end

-- Raises an error when a key is of the wrong type: before the first write, since Redis takes nothing back.
local function demand(key, want)
  local is = redis.call('TYPE', key)
  if type(is) == 'table' then
    is = is.ok
  end
  if is ~= 'none' and is ~= want then
    error('XQTYPE key ' .. key .. ' holds a ' .. is .. ', not a ' .. want, 0)
  end
end

-- The time of sending that an id begins with, in ms, or nil.
local function sent_ms(id)
  local head = string.match(string.lower(string.sub(id, 1, 10)), '^[0-9a-z]+')
  local us = 0
  if not head then
    return nil
  end
  for i = 1, #head do
    us = us * 36 + tonumber(string.sub(head, i, i), 36)
  end
  return math.floor(us / 1000)
end

-- The fields of a message of xstreamq: its body, and what RSMQ knew of it as headers.
local function fields(id, body, rc)
  local out = {'body', body, 'h:rsmq-id', id, 'h:rsmq-rc', rc or '0'}
  local sent = sent_ms(id)
  if sent then
    out[#out + 1] = 'h:rsmq-sent'
    out[#out + 1] = whole(sent)
  end
  return out
end
