-- extend: renews leases, or marks them, while their consumer still holds them.
--
-- An entry that is gone is left alone: claiming it would drop its pending row without a word.
--
-- KEYS 1 Source stream the deliveries were read from
-- ARGV 1 group string    consumer group of Source
-- ARGV 2 consumer string who must still hold them
-- ARGV 3 mode string     renew; check (only look); unstarted (renew, and let it run out as a release); started (renew, and count it)
-- ARGV 4... ids strings  their entry ids
-- RETURNS - one item per id, fewer when 1 MiB was looked at: 1 held, 0 lost, 2 held but its entry is gone

local source, group, consumer, mode = KEYS[1], ARGV[1], ARGV[2], ARGV[3]

local function extend(id)
  if mode == 'renew' then
    redis.call('XCLAIM', source, group, consumer, 0, id, 'JUSTID')
  elseif mode == 'unstarted' then
    redis.call('XCLAIM', source, group, consumer, 0, id, 'RETRYCOUNT', 0, 'JUSTID')
  elseif mode == 'started' then
    redis.call('XCLAIM', source, group, consumer, 0, id, 'RETRYCOUNT', 1, 'JUSTID')
  end
end

local out, seen = {}, 0
for i = 4, #ARGV do
  local id = ARGV[i]
  local held = #redis.call('XPENDING', source, group, id, id, 1, consumer) > 0
  local state = 0
  if held and mode == 'check' then
    state = 1
  elseif held then
    local found = redis.call('XRANGE', source, id, id)[1]
    if found and found[2] then
      extend(id)
      state = 1
      for j = 1, #found[2] do
        seen = seen + #found[2][j]
      end
    else
      state = 2
    end
  end
  out[#out + 1] = state
  if seen >= 1048576 then
    break
  end
end
return out
