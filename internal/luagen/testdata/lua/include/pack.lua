-- pack: the form of a member.
local function pack(id, body)
  return id .. '\0' .. body
end
