-- release: gives deliveries back unharmed, to be read again at once.
--
-- KEYS 1 Source stream they were read from
-- KEYS 2 Retry  stream of redeliveries
-- ARGV 1 group string    consumer group of Source
-- ARGV 2 consumer string who must still hold them
-- ARGV 3 ours bool       Source is the retry stream
-- ARGV 4 cap int         length of Retry at which it takes no more; 0 = none
-- ARGV 5... ids strings  their entry ids
-- RETURNS - one item per id, fewer when 1 MiB was copied: 1 released, 0 not held or its entry gone, or an error text
-- INCLUDE entry
-- INCLUDE retry

local source, retry = KEYS[1], KEYS[2]
local group, consumer, ours, cap = ARGV[1], ARGV[2], ARGV[3] == '1', tonumber(ARGV[4])

local wrong = mistyped(retry, 'stream')
if wrong then
  return redis.error_reply(wrong)
end
probe(source, group)

local copied = 0
local function give_back(id)
  if not holds(source, group, consumer, id) then
    return 0
  end
  local found = redis.call('XRANGE', source, id, id)[1]
  if not found or not found[2] then
    return 0
  end
  local e = open_entry(id, found[2], ours)
  room_in(retry, cap, ours)
  to_retry(retry, e)
  finish(source, group, id, ours)
  copied = copied + e.size
  return 1
end

local out = {}
for i = 5, #ARGV do
  local ok, result = pcall(give_back, ARGV[i])
  out[#out + 1] = ok and result or text_of(result)
  if copied >= 1048576 then
    break
  end
end
return out
