-- fail: writes the outcome of a delivery that did not end its message.
--
-- The message waits out its backoff, or becomes a dead letter when its failures are used up or a verdict says so. Forward
-- first, then ended where it was; only while the consumer still holds it.
--
-- KEYS 1 Source  stream it was read from
-- KEYS 2 Backoff zset of messages that wait
-- KEYS 3 DLQ     stream of dead letters
-- ARGV 1 group string    consumer group of Source
-- ARGV 2 consumer string who must still hold it
-- ARGV 3 id string       its entry id
-- ARGV 4 ours bool       Source is the retry stream
-- ARGV 5 spend int       failures to add: 1, or 0 for a verdict that is none
-- ARGV 6 budget int      failures allowed; -1 = without end
-- ARGV 7 delay int       ms to wait before the next delivery
-- ARGV 8 reason string   why it is dead whatever the budget; empty = it is not
-- ARGV 9 err string      its error; empty keeps the one it has
-- ARGV 10 held string    packed entry as the consumer read it, for an entry that is gone from Source; empty = not sent
-- RETURNS 0 Gone    the consumer does not hold it any more; nothing changed
-- RETURNS 1 Waiting it waits for its next delivery
-- RETURNS 2 Dead    it is a dead letter
-- RETURNS 3 Missing it is gone from Source and held is empty; nothing changed
-- INCLUDE entry

local source, backoff, dlq = KEYS[1], KEYS[2], KEYS[3]
local group, consumer, id, ours = ARGV[1], ARGV[2], ARGV[3], ARGV[4] == '1'
local spend, budget, delay = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local reason, err, held = ARGV[8], ARGV[9], ARGV[10]

if not holds(source, group, consumer, id) then
  return {0, ''}
end
local found = redis.call('XRANGE', source, id, id)[1]
local flat = found and found[2]
if not flat then
  if held == '' then
    return {3, ''}
  end
  flat = unpack_entry(held, 1)
  if not flat then
    return redis.error_reply('XQBAD the packed entry of ' .. id .. ' cannot be read')
  end
end

local e = open_entry(id, flat, ours)
e.rc = e.rc + spend
if err ~= '' then
  e.err = err
end
if reason == '' and budget >= 0 and e.rc > budget then
  reason = 'failed'
end

local wrong
if reason ~= '' then
  wrong = mistyped(dlq, 'stream')
else
  wrong = mistyped(backoff, 'zset')
end
if wrong then
  return redis.error_reply(wrong)
end

probe(source, group)
local now = now_ms()
local dead = ''
if reason ~= '' then
  dead = to_dlq(dlq, e, reason, now, id, consumer)
else
  to_backoff(backoff, e, now + delay, id)
end
finish(source, group, id, ours)
return {reason ~= '' and 2 or 1, dead}
