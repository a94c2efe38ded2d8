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

-- A stored counter; 0 if it is not there yet, nil if it is none that HINCRBY would count on, or too large for a script.
local function counter(text)
  if not text or text == '0' then
    return 0
  end
  local n = string.match(text, '^%-?[1-9]%d*$') and tonumber(text)
  return n and math.abs(n) < 2 ^ 53 and n or nil
end
