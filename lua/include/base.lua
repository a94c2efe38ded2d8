-- base: server time and the checks that come before a first write.

-- Server time in ms. TIME is read once per call: some servers freeze it for the whole script.
local function now_ms()
  local t = redis.call('TIME')
  return tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
end

-- A number as a whole decimal, never in exponent form.
local function whole(n)
  return string.format('%.0f', n)
end

-- What is wrong with the type of a key, or nil.
local function mistyped(key, want)
  local is = redis.call('TYPE', key)
  if type(is) == 'table' then
    is = is.ok
  end
  if is == 'none' or is == want then
    return nil
  end
  return 'XQTYPE key ' .. key .. ' holds a ' .. is .. ', not a ' .. want
end

-- Raises an error when a key is of the wrong type.
local function demand(key, want)
  local wrong = mistyped(key, want)
  if wrong then
    error(wrong, 0) -- 0: the text begins with its code, not with a line number
  end
end

-- The text of an error that pcall caught.
local function text_of(err)
  if type(err) == 'table' then
    return err.err or 'unknown error'
  end
  return tostring(err)
end

-- A write that changes nothing. It fails where writes are refused before anything has moved; and once it has passed,
-- the server lets the copy of a move through also at maxmemory, so that a full server can still be drained.
local function probe(stream, group)
  redis.call('XACK', stream, group, '0-0')
end
