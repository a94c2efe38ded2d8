package luagen

import "testing"

// TestAccepts holds what looks like a broken rule and is none.
func TestAccepts(t *testing.T) {
	t.Parallel()
	const header = "-- s: does it.\n-- KEYS 1 Queue the stream\n"
	const headerTail = header + "-- ARGV 1 group string the group\n-- ARGV 2... ids strings its entries\n"
	for name, files := range map[string]map[string]string{
		"pattern with a capture":  {"s.lua": header + "return string.match(KEYS[1], '(%d+)-')\n"},
		"comment marks in string": {"s.lua": header + "return KEYS[1] .. '-- KEYS 2 Nothing' .. \"[[\" -- it's [[ not code\n"},
		"recursion":               {"s.lua": header + "local function f(n)\n  if n == 0 then return 0 end\n  return f(n - 1)\nend\nreturn f(#KEYS[1])\n"},
		"local of repeat body":    {"s.lua": header + "repeat\n  local n = redis.call('LPOP', KEYS[1])\nuntil not n\nreturn 0\n"},
		"field of a local":        {"s.lua": header + "local t = {n = 1}\nt.n, t['m'] = 2, {}\nt.m.x = KEYS[1]\nfunction t.f(self) return self.n end\nreturn t:f()\n"},
		"upvalue":                 {"s.lua": header + "local n = 0\nlocal function f() n = n + #KEYS[1] end\nf()\nreturn n\n"},
		"name of an include reused": {
			"s.lua":           header + "-- INCLUDE now\nlocal now = now()\nreturn KEYS[1] .. now\n",
			"include/now.lua": "-- now: tells the time.\nlocal function now() return redis.call('TIME')[1] end\n",
		},
		"rest by loop":      {"s.lua": headerTail + "for i = 2, #ARGV, 2 do redis.call('XACK', KEYS[1], ARGV[1], ARGV[i]) end\nreturn 0\n"},
		"rest by unpack":    {"s.lua": headerTail + "return redis.call('XACK', KEYS[1], ARGV[1], unpack(ARGV, 2))\n"},
		"rest by literal":   {"s.lua": headerTail + "return redis.call('XACK', KEYS[1], ARGV[1], ARGV[3])\n"},
		"negative result":   {"s.lua": header + "-- RETURNS -1 Gone it is gone\nreturn {-1, KEYS[1]}\n"},
		"continued doc":     {"s.lua": header + "--   and more of it\n--\n--   and still more\nreturn KEYS[1]\n"},
		"prose about KEYS":  {"s.lua": "-- s: does it.\n--\n-- All KEYS share a slot.\n-- KEYS 1 Queue the stream\nreturn KEYS[1]\n"},
		"escapes of 5.1":    {"s.lua": header + "return KEYS[1] .. '\\0\\065\\n\\t\\\\\\'' .. \"\\\"\"\n"},
		"other file beside": {"s.lua": header + "return KEYS[1]\n", "README.md": "text"},
		"include by include": {
			"s.lua":         header + "-- INCLUDE a\nreturn a(KEYS[1])\n",
			"include/a.lua": "-- a: calls b.\n-- INCLUDE b\nlocal function a(x) return b(x) end\n",
			"include/b.lua": "-- b: gives it back.\nlocal function b(x) return x end\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := Generate(config(write(t, files))); err != nil {
				t.Error(err)
			}
		})
	}
}
