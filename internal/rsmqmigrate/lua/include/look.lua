-- look: what becomes of a message of RSMQ.

-- A message that is being copied is hidden by so many ms, and the fraction says so: its own time can be told from that, whatever happens to the
-- program that copies.
local HIDDEN, MARK = 9999999000, 0.3125

-- When a message is visible by itself, in whole ms, and whether it is being copied. Other programs may have stored any number: what is no time
-- before 2096 is brought into that range.
local function visible_at(score)
  local due = tonumber(score)
  if due % 1 == MARK then
    return due - HIDDEN - MARK, true
  end
  return math.ceil(math.max(0, math.min(due, 4e12))), false
end

-- What a message is: 'empty' without a body, 'visible', 'delayed' before its first receive, or 'flying': received, and hidden.
local function kind(body, rc, due, now, copying)
  if not body then
    return 'empty'
  elseif due <= now then
    return 'visible'
  elseif rc and not copying then
    return 'flying'
  end
  return 'delayed'
end
