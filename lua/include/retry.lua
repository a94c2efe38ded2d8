-- retry: the cap of the retry stream.

-- Raises an error when the retry stream has no room. A move within it needs none.
local function room_in(retry, cap, ours)
  if cap > 0 and not ours and redis.call('XLEN', retry) >= cap then
    error('XQFULL ' .. retry .. ' holds RetryMaxLen messages; this one stays where it is', 0)
  end
end
