-- move: copies an entry to a zset and ends it.
--
-- INCLUDE clock
-- INCLUDE pack

-- move returns false when the entry is not pending.
local function move(from, to, group, id, body, at)
  if redis.call('XACK', from, group, id) == 0 then
    return false
  end

  redis.call('ZADD', to, math.max(at, now()), pack(id, body))
  return true
end
