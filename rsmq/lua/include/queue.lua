-- queue: the clock, and a queue's attributes.

-- Server time as seconds and microseconds. A pinned time, as "seconds microseconds", is for tests.
local function clock(pinned)
  local s, us = string.match(pinned, '^(%d+) (%d+)$')
  if s then
    return tonumber(s), tonumber(us)
  end
  local t = redis.call('TIME')
  return tonumber(t[1]), tonumber(t[2])
end

local function millis(s, us)
  return s * 1000 + math.floor(us / 1000)
end

-- A number as a whole decimal, never in exponent form.
local function whole(n)
  return string.format('%.0f', n)
end

-- Raises an error when a key is of the wrong type: before the first write, since Redis takes nothing back.
local function demand(key, want)
  local is = redis.call('TYPE', key)
  if type(is) == 'table' then
    is = is.ok
  end
  if is ~= 'none' and is ~= want then
    error('WRONGTYPE key ' .. key .. ' holds a ' .. is .. ', not a ' .. want, 0)
  end
end

-- A stored number: the integer it begins with, or nil.
local function integer(text)
  local n = text and string.match(text, '^%s*([+-]?%d+)')
  return n and tonumber(n)
end

-- vt, delay and maxsize as they are stored, or nil: a queue that lacks one of them is none.
local function lookup(hash)
  local q = redis.call('HMGET', hash, 'vt', 'delay', 'maxsize')
  if q[1] and q[2] and q[3] then
    return {vt = q[1], delay = q[2], maxsize = q[3]}
  end
  return nil
end

-- A time in seconds that a queue stores, as ms, or nil when it is out of range.
local function span(text)
  local n = integer(text)
  if n and n >= 0 and n <= 9999999 then
    return n * 1000
  end
  return nil
end
