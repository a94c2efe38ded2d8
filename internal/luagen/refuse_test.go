package luagen

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	head = "-- s: does it.\n-- KEYS 1 Queue the stream\n" // two lines
	// okScript stands beside a broken include and uses nothing of it.
	okScript = head + "-- INCLUDE i\nreturn i(KEYS[1])\n"
)

// refusal is a script s.lua, with include files if any, and what is wrong with it.
type refusal struct {
	name     string
	script   string
	includes map[string]string
	want     string
}

func (r refusal) run(t *testing.T) {
	t.Parallel()
	files := map[string]string{"s.lua": r.script}
	for name, text := range r.includes {
		files["include/"+name+".lua"] = text
	}
	dir := write(t, files)
	_, err := Generate(config(dir))
	if err == nil {
		t.Fatalf("no error, want:\n%s", r.want)
	}
	got := strings.ReplaceAll(err.Error(), filepath.ToSlash(filepath.Dir(dir))+"/", "")
	if diff := cmp.Diff(strings.Split(r.want, "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}

func runRefusals(t *testing.T, list []refusal) {
	t.Helper()
	for _, r := range list {
		t.Run(r.name, r.run)
	}
}

func TestRefusesHeader(t *testing.T) {
	t.Parallel()
	const (
		first = `lua/s.lua:1: the first line must be "-- s: purpose." (the file's own name, a sentence, a full stop)`
		keys  = ` want "KEYS n Name doc", where Name is a field of the keys struct`
		argv  = ` want "ARGV n name type doc", with type string, bytes, int or bool, or at the end "ARGV n... name strings doc"`
		ret   = ` want "RETURNS code Name doc" with an integer code, or "RETURNS - text"`
		use   = "return redis.call('XADD', KEYS[1], ARGV[1], ARGV[2])\n"
	)
	runRefusals(t, []refusal{
		{"other name", "-- other: does it.\n-- KEYS 1 Queue the stream\nreturn KEYS[1]\n", nil, first},
		{"no full stop", "-- s: does it\n-- KEYS 1 Queue the stream\nreturn KEYS[1]\n", nil, first},
		{"no header", "return 1\n", nil, first},
		{"empty file", "", nil, first},
		{"no keys", "-- s: does it.\nreturn 1\n", nil, "lua/s.lua:1: no KEYS: a cluster could not tell where the script runs"},
		{"no code", head, nil, "lua/s.lua:2: the file has no code"},
		{"not UTF-8", head + "-- \xff\nreturn KEYS[1]\n", nil, "lua/s.lua:3: the line holds control characters or is not UTF-8"},
		{"control characters", head + "return KEYS[1]\r-- \x00\n", nil, "lua/s.lua:3: the line holds control characters or is not UTF-8"},
		{"keys without doc", head + "-- KEYS 2 Retry\nreturn KEYS[1]\n", nil, "lua/s.lua:3:" + keys},
		{"keys with small name", head + "-- KEYS 2 retry the stream\nreturn KEYS[1]\n", nil, "lua/s.lua:3:" + keys},
		{"keys out of order", head + "-- KEYS 3 Retry the stream\nreturn KEYS[1]\n", nil, "lua/s.lua:3: KEYS 3 is out of order, want KEYS 2"},
		{"keys twice", head + "-- KEYS 2 Queue the stream\nreturn KEYS[1]\n", nil, "lua/s.lua:3: key Queue is declared already in line 2"},
		{"argv without type", head + "-- ARGV 1 group\n" + use, nil, "lua/s.lua:3:" + argv},
		{"argv of unknown type", head + "-- ARGV 1 group float the group\n" + use, nil, "lua/s.lua:3:" + argv},
		{"argv with big name", head + "-- ARGV 1 Group string the group\n" + use, nil, "lua/s.lua:3:" + argv},
		{"argv tail of one string", head + "-- ARGV 1... group string the group\n" + use, nil, "lua/s.lua:3:" + argv},
		{"argv strings without tail", head + "-- ARGV 1 ids strings the entries\n" + use, nil, "lua/s.lua:3:" + argv},
		{"argv out of order", head + "-- ARGV 2 group string the group\n" + use, nil, "lua/s.lua:3: ARGV 2 is out of order, want ARGV 1"},
		{"argv twice", head + "-- ARGV 1 id string the entry\n-- ARGV 2 iD string the entry\n" + use, nil, "lua/s.lua:4: argument iD is declared already in line 3"},
		{"argv after tail", head + "-- ARGV 1... ids strings the entries\n-- ARGV 2 group string the group\n" + use, nil, "lua/s.lua:4: ARGV after the one that takes all the rest (line 3)"},
		{"returns without name", head + "-- RETURNS 0\nreturn KEYS[1]\n", nil, "lua/s.lua:3:" + ret},
		{"returns without code", head + "-- RETURNS Gone it is gone\nreturn KEYS[1]\n", nil, "lua/s.lua:3:" + ret},
		{"returns too big", head + "-- RETURNS 9223372036854775808 Gone it is gone\nreturn KEYS[1]\n", nil, "lua/s.lua:3:" + ret},
		{"returns code twice", head + "-- RETURNS 0 Gone it is gone\n-- RETURNS 0 Moved it is moved\nreturn KEYS[1]\n", nil, "lua/s.lua:4: result 0 Moved is declared already in line 3"},
		{"returns name twice", head + "-- RETURNS 0 Gone it is gone\n-- RETURNS 1 Gone it is gone\nreturn KEYS[1]\n", nil, "lua/s.lua:4: Go name sGone is taken already by lua/s.lua:3\nlua/s.lua:4: result 1 Gone is declared already in line 3"},
		{"returns taken name", head + "-- RETURNS 0 Source it is there\nreturn #KEYS[1] - 0\n", nil, "lua/s.lua:3: Go name sSource is taken already by lua/s.lua:1"},
		{"idempotent with text", head + "-- IDEMPOTENT mostly\nreturn KEYS[1]\n", nil, "lua/s.lua:3: IDEMPOTENT stands alone on its line"},
		{"include of two", head + "-- INCLUDE a b\nreturn KEYS[1]\n", nil, `lua/s.lua:3: want "INCLUDE name"`},
		{"prose after declarations", head + "-- More prose.\nreturn KEYS[1]\n", nil, "lua/s.lua:3: prose belongs above the declarations; indent the line by two spaces to continue the one before it"},
		{"blank line in header", head + "\n-- KEYS 2 Retry the stream\nreturn KEYS[1]\n", nil, "lua/s.lua:4: declaration outside the header: the header ends at the first line without a comment"},
		{"all problems at once", head + "-- KEYS 3 Retry the stream\n-- ARGV 2 id string the entry\n" + use, nil, "lua/s.lua:3: KEYS 3 is out of order, want KEYS 2\nlua/s.lua:4: ARGV 2 is out of order, want ARGV 1"},
	})
}

func TestRefusesUnused(t *testing.T) {
	t.Parallel()
	const tail = head + "-- ARGV 1 group string the group\n-- ARGV 2... ids strings its entries\n"
	const noRest = `, but the header declares no "ARGV n... name strings"`
	runRefusals(t, []refusal{
		{"unused key", head + "-- KEYS 2 Retry the stream\nreturn KEYS[1]\n", nil, "lua/s.lua:3: KEYS[2] Retry is not used in the code"},
		{"unused argument", head + "-- ARGV 1 group string the group\nreturn KEYS[1]\n", nil, "lua/s.lua:3: ARGV[1] group is not used in the code"},
		{"unused rest", tail + "return KEYS[1] .. ARGV[1]\n", nil, "lua/s.lua:4: ARGV[2] ids is not used in the code"},
		{"unused argument before a rest", tail + "return {KEYS[1], unpack(ARGV, 2)}\n", nil, "lua/s.lua:3: ARGV[1] group is not used in the code"},
		{"unused result", head + "-- RETURNS 7 Gone it is gone\nreturn KEYS[1]\n", nil, "lua/s.lua:3: result 7 Gone does not occur in the code"},
		{"undeclared key", head + "return KEYS[1] ..\n  KEYS[2]\n", nil, "lua/s.lua:4: KEYS[2] is not declared in the header"},
		{"undeclared key 0", head + "return KEYS[1] .. KEYS[0]\n", nil, "lua/s.lua:3: KEYS[0] is not declared in the header"},
		{"undeclared argument", head + "return KEYS[1] .. ARGV[1]\n", nil, "lua/s.lua:3: ARGV[1] is not declared in the header"},
		{"computed key", head + "local n = 1\nreturn KEYS[n] .. KEYS[1]\n", nil, "lua/s.lua:4: index of KEYS is not a literal number"},
		{"all keys", head + "return {KEYS[1], #KEYS}\n", nil, "lua/s.lua:3: KEYS is used as a whole: name the key by a literal index"},
		{"computed argument", head + "local n = 1\nreturn KEYS[1] .. ARGV[n]\n", nil, "lua/s.lua:4: index of ARGV that is not a literal number" + noRest},
		{"count of arguments", head + "return {KEYS[1], #ARGV}\n", nil, "lua/s.lua:3: ARGV is used as a whole" + noRest},
		{"all arguments", head + "return {KEYS[1], unpack(ARGV)}\n", nil, "lua/s.lua:3: ARGV is used as a whole" + noRest},
		{"rest of loop starts early", tail + "for i = 1, #ARGV do redis.call('DEL', KEYS[1], ARGV[i]) end\nreturn ARGV[1]\n", nil, "lua/s.lua:5: starts at ARGV[1], but the rest starts at ARGV[2]"},
		{"rest of unpack starts early", tail + "return {KEYS[1], ARGV[1], unpack(ARGV)}\n", nil, "lua/s.lua:5: starts at ARGV[1], but the rest starts at ARGV[2]"},
		{"hidden keys", head + "local KEYS = {KEYS[1]}\nreturn KEYS[2]\n", nil, "lua/s.lua:3: local KEYS hides the global of that name"},
	})
}

func TestRefusesCode(t *testing.T) {
	t.Parallel()
	const redisTable = "of redis only call, pcall, error_reply, status_reply, sha1hex, log, LOG_DEBUG, LOG_VERBOSE, LOG_NOTICE, LOG_WARNING may be used"
	global := func(name string) string {
		return "global " + name + ": not declared here, nor one that every server has"
	}
	runRefusals(t, []refusal{
		{"syntax", head + "\n-- A comment.\nif KEYS[1] than\nend\n", nil, `lua/s.lua:5: does not compile: near "than": syntax error`},
		{"end missing", head + "if KEYS[1] then\n  return 1\n\n", nil, `lua/s.lua:4: does not compile: near "1": syntax error`},
		{"break outside a loop", head + "local n = KEYS[1]\nif n then\n  break\nend\n", nil, "lua/s.lua:5: does not compile: no loop to break"},
		{"goto", head + "goto done\n::done::\nreturn KEYS[1]\n", nil, "lua/s.lua:3: goto is not Lua 5.1\nlua/s.lua:4: goto is not Lua 5.1"},
		{"global assigned", head + "n = KEYS[1]\nreturn 1\n", nil, "lua/s.lua:3: assignment to global n: declare it local"},
		{"global assigned in a function", head + "local function f()\n  local m\n  m, n = 1, KEYS[1]\nend\nreturn f()\n", nil, "lua/s.lua:5: assignment to global n: declare it local"},
		{"local of a block that is over", head + "do\n  local n = 1\nend\nn = KEYS[1]\n", nil, "lua/s.lua:6: assignment to global n: declare it local"},
		{"global function", head + "function f()\n  return KEYS[1]\nend\nreturn 1\n", nil, "lua/s.lua:3: assignment to global f: declare it local"},
		{"function in a library", head + "function string.f()\n  return KEYS[1]\nend\nreturn 1\n", nil, "lua/s.lua:3: assignment to global string: declare it local"},
		{"argument assigned", head + "-- ARGV 1 id string the entry\nARGV[1] = KEYS[1]\nreturn ARGV[1]\n", nil, "lua/s.lua:4: assignment to global ARGV: declare it local"},
		{"unknown global", head + "return tonumbr(KEYS[1])\n", nil, "lua/s.lua:3: " + global("tonumbr")},
		{"used before declared", head + "local function f() return g(KEYS[1]) end\nlocal function g(x) return x end\nreturn f() .. g('')\n", nil, "lua/s.lua:3: " + global("g")},
		{"cmsgpack", head + "return cmsgpack.pack(KEYS[1])\n", nil, "lua/s.lua:3: " + global("cmsgpack")},
		{"struct", head + "return struct.pack('s', KEYS[1])\n", nil, "lua/s.lua:3: " + global("struct")},
		{"bit", head + "return bit.band(#KEYS[1], 1)\n", nil, "lua/s.lua:3: " + global("bit")},
		{"loadstring", head + "return loadstring(KEYS[1])()\n", nil, "lua/s.lua:3: " + global("loadstring")},
		{"os", head + "return KEYS[1] .. os.time()\n", nil, "lua/s.lua:3: " + global("os")},
		{"io", head + "return io.read(KEYS[1])\n", nil, "lua/s.lua:3: " + global("io")},
		{"replicate_commands", head + "redis.replicate_commands()\nreturn KEYS[1]\n", nil, "lua/s.lua:3: " + redisTable},
		{"redis by computed name", head + "return redis[KEYS[1]]()\n", nil, "lua/s.lua:3: " + redisTable},
		{"redis as a value", head + "local r = redis\nreturn r.call('DEL', KEYS[1])\n", nil, "lua/s.lua:3: redis is used as a whole: name the function"},
		{"exclusive range", head + "return redis.call('XRANGE', KEYS[1], '(' .. 1, '+')\n", nil, `lua/s.lua:3: string "(": exclusive ranges are not to be had on every server`},
		{"exclusive range of an id", head + "return redis.call('XRANGE', KEYS[1],\n  '(1-0', '+')\n", nil, `lua/s.lua:4: string "(1-0": exclusive ranges are not to be had on every server`},
		{"long string", head + "return [==[x]==] .. KEYS[1]\n", nil, "lua/s.lua:3: long strings are not supported: use quotes"},
		{"long comment", head + "--[[\nx = 1\n]]\nreturn KEYS[1]\n", nil, "lua/s.lua:3: long comments are not supported: start every line with --"},
		{"string over lines", head + "return KEYS[1] .. 'a\\\nb'\n", nil, "lua/s.lua:3: the string does not end on its line\nlua/s.lua:4: the string does not end on its line"},
		{"escape of later Lua", head + "return KEYS[1] .. '\\x41'\n", nil, `lua/s.lua:3: escape \x is not Lua 5.1: use \ddd, decimal`},
		{"letter in code", head + "return KEYS[1] .. 'ä'\n", nil, `lua/s.lua:3: byte 0xc3 in the code: write it as an escape, "\195"`},
	})
}

func TestRefusesIncludes(t *testing.T) {
	t.Parallel()
	const i = "-- i: gives it back.\n"
	const fn = "local function i(x) return x end\n"
	const use = "return i(KEYS[1])\n"
	one := func(text string) map[string]string { return map[string]string{"i": text} }
	runRefusals(t, []refusal{
		{"missing", okScript, nil, "lua/s.lua:3: there is no include/i.lua"},
		{"twice", head + "-- INCLUDE i\n-- INCLUDE i\n" + use, one(i + fn), "lua/s.lua:4: i is included already in line 3"},
		{"unused file", head + "return KEYS[1]\n", one(i + fn), "lua/include/i.lua:1: no script includes this file"},
		{"nothing used", head + "-- INCLUDE i\nreturn KEYS[1]\n", one(i + fn), "lua/s.lua:3: nothing of i is used here"},
		{"only used through another", head + "-- INCLUDE a\n-- INCLUDE i\nreturn a(KEYS[1])\n", map[string]string{
			"a": "-- a: calls i.\n-- INCLUDE i\nlocal function a(x) return i(x) end\n", "i": i + fn,
		}, "lua/s.lua:4: nothing of i is used here"},
		{"itself", okScript, one(i + "-- INCLUDE i\n" + fn), "lua/include/i.lua:2: INCLUDE i goes round in a circle: lua/s.lua -> lua/include/i.lua -> lua/include/i.lua"},
		{"circle", okScript, map[string]string{
			"i": i + "-- INCLUDE j\n" + fn, "j": "-- j: goes back.\n-- INCLUDE i\nlocal function j(x) return i(x) end\n",
		}, "lua/include/j.lua:2: INCLUDE i goes round in a circle: lua/s.lua -> lua/include/i.lua -> lua/include/j.lua -> lua/include/i.lua"},
		{"no header", okScript, one(fn), `lua/include/i.lua:1: the first line must be "-- i: purpose." (the file's own name, a sentence, a full stop)`},
		{"declarations", okScript, one(i + "-- KEYS 1 Queue the stream\n-- ARGV 1 id string the entry\n-- RETURNS - it\n-- IDEMPOTENT\n" + fn), `lua/include/i.lua:1: an include cannot be IDEMPOTENT: that is for the script to say
lua/include/i.lua:2: an include has no KEYS and no ARGV: make Queue a parameter of its functions
lua/include/i.lua:3: an include has no KEYS and no ARGV: make id a parameter of its functions
lua/include/i.lua:4: an include has no RETURNS: say in a comment what its functions return`},
		{"keys in the code", okScript, one(i + "local function i()\n  return KEYS[1] .. ARGV[1] .. #ARGV\nend\n"), `lua/include/i.lua:3: ARGV in an include: make it a parameter of the function
lua/include/i.lua:3: KEYS in an include: make it a parameter of the function`},
		{"global function", okScript, one(i + "function i(x) return x end\n"), "lua/include/i.lua:2: functions of an include are declared with local function"},
		{"return", okScript, one(i + fn + "return 1\n"), "lua/include/i.lua:3: return outside a function in an include: nothing after it would run"},
		{"syntax", okScript, one(i + "\nlocal function i(x return x end\n"), `lua/include/i.lua:3: does not compile: near "return": syntax error`},
		{"name taken", head + "-- INCLUDE i\n-- INCLUDE j\nreturn i(KEYS[1]) .. j(1)\n", map[string]string{
			"i": i + fn, "j": "-- j: hides i.\nlocal function i(x) return x end\nlocal function j(x) return i(x) end\n",
		}, "lua/include/j.lua:2: local i is declared already in lua/include/i.lua\nlua/s.lua:3: nothing of i is used here"},
		{"file name", okScript, map[string]string{"i": i + fn, "I_2": fn}, "lua/include/I_2.lua:1: the file name must be letters and digits, the first a small letter"},
	})
}

func TestRefusesNameTwice(t *testing.T) {
	t.Parallel()
	const script = "-- KEYS 1 Queue the stream\n-- RETURNS 0 %s a result\nreturn #KEYS[1] - 0\n"
	dir := write(t, map[string]string{
		"a.lua":  "-- a: does it.\n" + strings.ReplaceAll(script, "%s", "BGone"),
		"aB.lua": "-- aB: does it.\n" + strings.ReplaceAll(script, "%s", "Gone"),
	})
	_, err := Generate(config(dir))
	want := dir + "/aB.lua:3: Go name aBGone is taken already by " + dir + "/a.lua:3"
	if err == nil || err.Error() != want {
		t.Errorf("error = %v, want %s", err, want)
	}
}

func TestRefusesFolder(t *testing.T) {
	t.Parallel()
	if _, err := Generate(config(filepath.Join(t.TempDir(), "nothing"))); err == nil {
		t.Error("no error for a folder that does not exist")
	}
	if _, err := Generate(config(write(t, map[string]string{"README.md": "text"}))); err == nil {
		t.Error("no error for a folder without scripts")
	}
	if _, err := Generate(Config{Lua: "testdata/lua"}); err == nil {
		t.Error("no error for a configuration without package and keys")
	}
}
