-- number: numbers as they are stored.

-- A number as a whole decimal, never in exponent form.
local function whole(n)
  return string.format('%.0f', n)
end

-- A stored number: the integer it begins with, or nil.
local function integer(text)
  local n = text and string.match(text, '^%s*([+-]?%d+)')
  return n and tonumber(n)
end

-- A time in seconds that a queue stores, as ms, or nil when it is out of range.
local function span(text)
  local n = integer(text)
  if n and n >= 0 and n <= 9999999 then
    return n * 1000
  end
  return nil
end

-- A stored counter. One that is no number, or too large for a script to count, is an error: before the first write, since Redis takes
-- nothing back.
local function counter(text)
  local n = tonumber(text or 0)
  if not n or n % 1 ~= 0 or n >= 2 ^ 53 or n <= -2 ^ 53 then
    error('ERR a counter of the queue is not an integer', 0)
  end
  return n
end
