-- pack: the packed form of an entry, <length>:<bytes> per name and value.

local function pack(fields)
  local out = {}
  for i = 1, #fields do
    out[i] = #fields[i] .. ':' .. fields[i]
  end
  return table.concat(out)
end

-- The fields of a packed entry, or nil when it is not one.
local function unpack_entry(packed, from)
  local fields, at = {}, from
  while at <= #packed do
    local colon = string.find(packed, ':', at, true)
    if not colon then
      return nil
    end
    local len = string.match(string.sub(packed, at, colon - 1), '^%d+$')
    len = len and tonumber(len)
    if not len or colon + len > #packed then
      return nil
    end
    fields[#fields + 1] = string.sub(packed, colon + 1, colon + len)
    at = colon + len + 1
  end
  if #fields % 2 ~= 0 then
    return nil
  end
  return fields
end
