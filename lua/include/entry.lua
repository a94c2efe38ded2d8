-- entry: takes entries apart, and writes them forward.
--
-- INCLUDE base
-- INCLUDE pack

local RESERVED = {
  oid = true, pub = true, rc = true, lc = true, err = true, reason = true, at = true, from = true, by = true,
}

-- More arguments than this do not pass from Lua to a command.
local MAX_ARGS = 7000

local function scheduled(id)
  return id and #id <= 64 and string.match(id, '^d%d+%-[0-9a-f]+$') ~= nil
end

local function counter(s)
  return s and string.match(s, '^%d+$') and tonumber(s) or 0
end

-- Takes an entry apart: what travels on as it is, and what is ours. ours is true for the retry stream, which only this
-- engine writes. On the queue a reserved name is a stranger's: it is dropped, but for the id of a delayed publish.
local function open_entry(id, flat, ours)
  local e = {fields = {}, body = false, size = 0}
  local own = {}
  for i = 1, #flat, 2 do
    local name, value = flat[i], flat[i + 1]
    e.size = e.size + #name + #value
    if not RESERVED[name] then
      e.fields[#e.fields + 1] = name
      e.fields[#e.fields + 1] = value
      e.body = e.body or name == 'body'
    elseif ours or name ~= 'oid' or scheduled(value) then
      own[name] = value
    end
  end
  e.oid = own.oid or id
  if scheduled(e.oid) then
    e.pub = own.pub
  end
  e.rc = ours and counter(own.rc) or 0
  e.lc = ours and counter(own.lc) or 0
  e.err = ours and own.err or nil
  return e
end

-- The body and the rest packed into one field: for entries of more fields than a script can write.
local function squeeze(fields)
  local kept, rest = {}, {}
  for i = 1, #fields, 2 do
    local into = rest
    if fields[i] == 'body' and #kept == 0 then
      into = kept
    end
    into[#into + 1] = fields[i]
    into[#into + 1] = fields[i + 1]
  end
  kept[#kept + 1] = 'xq:packed'
  kept[#kept + 1] = pack(rest)
  return kept
end

-- All fields of an entry on its way: a stranger's as they were, then ours.
local function fields_of(e, more)
  local out = {}
  for i = 1, #e.fields do
    out[i] = e.fields[i]
  end
  if #out > MAX_ARGS then
    out = squeeze(out)
  end
  local function add(name, value)
    if value then
      out[#out + 1] = name
      out[#out + 1] = value
    end
  end
  add('oid', e.oid)
  add('pub', e.pub)
  add('rc', e.rc > 0 and whole(e.rc))
  add('lc', e.lc > 0 and whole(e.lc))
  add('err', e.err)
  for i = 1, #(more or {}), 2 do
    add(more[i], more[i + 1])
  end
  return out
end

local function append(stream, fields)
  return redis.call('XADD', stream, '*', unpack(fields))
end

-- Writes an entry to the retry stream, where it is read at once.
local function to_retry(retry, e)
  return append(retry, fields_of(e))
end

-- Writes an entry to the zset of those that wait.
local function to_backoff(backoff, e, due, from)
  local head, packed = e.oid .. '\0', pack(fields_of(e))
  if redis.call('ZADD', backoff, 'NX', whole(due), head .. packed) == 0 then
    -- Another one of the same id and content waits already. A stranger can make that, and both are messages.
    redis.call('ZADD', backoff, whole(due), head .. packed .. pack({'from', from}))
  end
end

-- Writes a dead letter.
local function to_dlq(dlq, e, reason, now, from, by)
  return append(dlq, fields_of(e, {'reason', reason, 'at', whole(now), 'from', from, 'by', by}))
end

-- Ends an entry where it was. The retry stream holds live messages only, so there it is deleted too.
local function finish(source, group, id, ours)
  redis.call('XACK', source, group, id)
  if ours then
    redis.call('XDEL', source, id)
  end
end

-- Whether a consumer still holds an entry. Never compares delivery counts: some servers count claims that should not.
local function holds(source, group, consumer, id)
  return #redis.call('XPENDING', source, group, id, id, 1, consumer) > 0
end
