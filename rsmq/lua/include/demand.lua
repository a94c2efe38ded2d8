-- demand: the types of keys.

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
