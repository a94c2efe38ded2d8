-- places: counts where the messages of a group are.
--
-- INCLUDE base

-- What a stream knows of a group; one that is not there has been given nothing.
local function group_of(stream, name)
  if redis.call('EXISTS', stream) == 1 then
    local groups = redis.call('XINFO', 'GROUPS', stream)
    for i = 1, #groups do
      local g = {}
      for j = 1, #groups[i], 2 do
        g[groups[i][j]] = groups[i][j + 1]
      end
      if g.name == name then
        return g
      end
    end
  end
  return {pending = 0, ['last-delivered-id'] = '0-0'}
end

local function id_of(entry)
  return entry and entry[1] or ''
end

-- The id that a message keeps, which tells its age wherever it lies.
local function original(entry)
  local id = id_of(entry)
  local fields = entry and entry[2] or {}
  for i = 1, #fields, 2 do
    if fields[i] == 'oid' then
      id = fields[i + 1]
    end
  end
  return id
end

-- g is what the stream of the queue says of the group; nil = it is asked.
local function places(queue, delayed, retry, backoff, dlq, group, retry_group, g)
  local wrong = mistyped(queue, 'stream') or mistyped(delayed, 'zset') or mistyped(retry, 'stream')
    or mistyped(backoff, 'zset') or mistyped(dlq, 'stream')
  if wrong then
    return redis.error_reply(wrong)
  end
  g = g or group_of(queue, group)
  local delivered = g['last-delivered-id']
  local first, newest = '', ''
  -- Ranges that leave out their start are not to be had everywhere.
  local ahead = redis.call('XRANGE', queue, delivered, '+', 'COUNT', 2)
  local undelivered = id_of(ahead[1])
  if undelivered == delivered then
    undelivered = id_of(ahead[2])
  end
  if undelivered ~= '' then
    first = id_of(redis.call('XRANGE', queue, '-', '+', 'COUNT', 1)[1])
    if first ~= undelivered then
      newest = id_of(redis.call('XREVRANGE', queue, '+', '-', 'COUNT', 1)[1])
    end
  end
  local oldest = g.pending > 0 and id_of(redis.call('XPENDING', queue, group, '-', '+', 1)[1]) or ''

  return {
    now_ms(), g.name and 1 or 0,
    redis.call('XLEN', queue), g.pending, g.lag or -1, delivered, first, undelivered, newest, oldest,
    redis.call('XLEN', retry), group_of(retry, retry_group).pending, original(redis.call('XRANGE', retry, '-', '+', 'COUNT', 1)[1]),
    redis.call('ZCARD', delayed), redis.call('ZCARD', backoff), redis.call('XLEN', dlq),
  }
end
