-- base: numbers, time and types.

-- A number as a whole decimal, never in exponent form.
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
