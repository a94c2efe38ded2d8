-- clock: the time.

-- Server time as seconds and microseconds. A pinned time, as "seconds microseconds", is for tests.
local function clock(pinned)
  if pinned ~= '' then
    local s, us = string.match(pinned, '^(%d+) (%d+)$')
    return tonumber(s), tonumber(us)
  end
  local t = redis.call('TIME')
  return tonumber(t[1]), tonumber(t[2])
end

local function millis(s, us)
  return s * 1000 + math.floor(us / 1000)
end
