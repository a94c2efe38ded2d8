package rsmqrest

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

const (
	unknownID = "gqll7vatqf0000000000000000000001"
	token     = "a-long-secret"
)

func queue(name string) map[string]string   { return map[string]string{"qname": name} }
func one(name, id string) map[string]string { return map[string]string{"qname": name, "id": id} }

type fields = map[string]any

// Every operation of the document gives every status that it names there, with the body that it describes.
func TestEveryRouteAndError(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	proxy := redistest.NewProxy(t, server.URL())
	a := serve(t, proxy.URL(), Options{Token: token, MaxBody: 2000, Timeout: 300 * time.Millisecond})
	ok := http.StatusOK

	a.want(ok, "", "createQueue", request{path: queue("q"), body: fields{"vt": 20, "delay": "0", "maxsize": -1}})
	a.want(http.StatusConflict, "queueExists", "createQueue", request{path: queue("q")})
	a.want(ok, "", "createQueue", request{path: queue("form"), kind: "application/x-www-form-urlencoded", body: "vt=7&maxsize=1024"})
	for _, bad := range []fields{{"vt": -1}, {"vt": "abc"}, {"delay": 10000000}, {"maxsize": 5}, {"vt": true}, {"maxsize": "1e"}, {"vt": []int{5}}} {
		a.want(http.StatusBadRequest, "invalidValue", "createQueue", request{path: queue("r"), body: bad})
	}
	a.want(http.StatusBadRequest, "invalidFormat", "createQueue", request{path: queue("a b")})
	a.want(http.StatusBadRequest, "invalidFormat", "createQueue", request{path: queue("QUEUES")})
	if got := a.want(ok, "", "listQueues", request{}); len(got["queues"].([]any)) != 2 {
		t.Errorf("queues: %v", got)
	}
	if got := a.want(ok, "", "getQueue", request{path: queue("form")}); fmt.Sprintf("%v %v %v", got["vt"], got["maxsize"], got["msgs"]) != "7 1024 0" {
		t.Errorf("attributes: %v", got)
	}
	a.want(http.StatusNotFound, "queueNotFound", "getQueue", request{path: queue("nope")})
	a.want(http.StatusBadRequest, "invalidFormat", "getQueue", request{path: queue("a.b")})
	if got := a.want(ok, "", "setQueue", request{path: queue("q"), body: fields{"vt": 9}}); fmt.Sprint(got["vt"]) != "9" {
		t.Errorf("attributes: %v", got)
	}
	if got := a.want(ok, "", "setQueue", request{path: queue("q"), body: `{"vt": 9e1}`}); fmt.Sprint(got["vt"]) != "90" {
		t.Errorf("attributes: %v", got)
	}
	a.want(http.StatusBadRequest, "noAttributeSupplied", "setQueue", request{path: queue("q")})
	a.want(http.StatusNotFound, "queueNotFound", "setQueue", request{path: queue("nope"), body: fields{"vt": 1}})

	messages(t, a)

	for _, operation := range []string{"createQueue", "setQueue", "sendMessage", "changeVisibility"} {
		r := request{path: one("q", unknownID)}
		r.body = `{"message":"` + strings.Repeat("x", 3000) + `"}`
		a.want(http.StatusRequestEntityTooLarge, "bodyTooLarge", operation, r)
		for _, bad := range []string{"{", "[]", "null", `"a"`, `{"a":1} {}`, "\x00", `{"message":"x"`, "{\"message\":\"\xff\"}"} {
			r.body = bad
			a.want(http.StatusBadRequest, "invalidBody", operation, r)
		}
		r.body, r.kind = "<a/>", "text/xml"
		a.want(http.StatusUnsupportedMediaType, "unsupportedType", operation, r)
		r.body, r.kind = "a=%zz", "application/x-www-form-urlencoded"
		a.want(http.StatusBadRequest, "invalidBody", operation, r)
	}
	// A number of JSON has an exponent, and a text has none.
	for body, vt := range map[string]string{`{"vt": 3e1}`: "30", `{"vt": "4e1"}`: "4"} {
		if got := a.want(ok, "", "setQueue", request{path: queue("form"), body: body}); fmt.Sprint(got["vt"]) != vt {
			t.Errorf("%s: %v", body, got)
		}
	}
	a.want(ok, "", "deleteQueue", request{path: queue("form")})
	a.want(http.StatusNotFound, "queueNotFound", "deleteQueue", request{path: queue("form")})
	a.want(http.StatusBadRequest, "invalidFormat", "deleteQueue", request{path: queue("a:b")})
	a.want(ok, "", "health", request{})

	all := map[string]request{
		"listQueues": {}, "createQueue": {path: queue("z")}, "getQueue": {path: queue("q")}, "setQueue": {path: queue("q"), body: fields{"vt": 1}},
		"deleteQueue": {path: queue("z")}, "sendMessage": {path: queue("q"), body: fields{"message": "m"}}, "receiveMessage": {path: queue("q")},
		"popMessage": {path: queue("q")}, "changeVisibility": {path: one("q", unknownID), body: fields{"vt": 1}},
		"deleteMessage": {path: one("q", unknownID)},
	}
	for operation, r := range all {
		for _, wrong := range []string{"Bearer", "Bearer x", "Basic " + token, "Bearer " + token + "x", "Bearer " + token[1:]} {
			r.token = wrong
			a.want(http.StatusUnauthorized, "unauthorized", operation, r)
		}
	}
	proxy.BlackHole()
	for operation, r := range all {
		if operation != "listQueues" && operation != "getQueue" {
			a.want(http.StatusBadGateway, "outcomeUnknown", operation, r)
		}
	}
	proxy.Close()
	for operation, r := range all {
		redistest.WaitFor(t, 10*time.Second, operation+" refused", func() bool {
			status, _ := a.do(operation, r)
			return status == http.StatusServiceUnavailable
		})
	}
	for token, told := range map[string]bool{"Bearer " + token: true, "Bearer x": false} {
		got := a.want(http.StatusServiceUnavailable, "", "health", request{token: token})
		if strings.Contains(fmt.Sprint(got["problem"]), "127.0.0.1") != told {
			t.Errorf("told %q: %v", token, got)
		}
	}
	a.do("document", request{})
	for operation, c := range a.calls {
		for _, status := range c.statuses {
			if !a.seen[operation+" "+status] {
				t.Errorf("%s never answered %s", operation, status)
			}
		}
	}
}

// messages passes messages through the queue q.
func messages(t *testing.T, a *openAPI) {
	t.Helper()
	ok := http.StatusOK
	id := a.want(ok, "", "sendMessage", request{path: queue("q"), body: fields{"message": "Grüße <&> \x00", "qname": "other"}})["id"].(string)
	got := a.want(ok, "", "receiveMessage", request{path: queue("q"), query: url.Values{"vt": {"30"}}})
	if got["id"] != id || got["message"] != "Grüße <&> \x00" || fmt.Sprint(got["rc"]) != "1" {
		t.Errorf("received %v", got)
	}
	if got := a.want(ok, "", "receiveMessage", request{path: queue("q")}); len(got) != 0 {
		t.Errorf("received %v", got)
	}
	if _, _, text := a.raw(http.MethodGet, "/messages/form?vt=0", nil, request{}); string(text) != "{}\n" {
		t.Errorf("an empty queue answers %q", text)
	}
	for want, r := range map[string]request{
		"1": {path: one("q", id), query: url.Values{"vt": {"0"}}},
		"0": {path: one("q", unknownID), body: fields{"vt": "5"}},
	} {
		if got := a.want(ok, "", "changeVisibility", r); fmt.Sprint(got["result"]) != want {
			t.Errorf("%+v: %v", r, got)
		}
	}
	if got := a.want(ok, "", "popMessage", request{path: queue("q")}); got["id"] != id || fmt.Sprint(got["rc"]) != "2" {
		t.Errorf("popped %v", got)
	}
	if got := a.want(ok, "", "popMessage", request{path: queue("q")}); len(got) != 0 {
		t.Errorf("popped %v", got)
	}
	late := a.want(ok, "", "sendMessage", request{path: queue("q"), kind: "application/x-www-form-urlencoded", body: "message=a+b&delay=50"})["id"].(string)
	for _, want := range []string{"1", "0"} {
		if got := a.want(ok, "", "deleteMessage", request{path: one("q", late)}); fmt.Sprint(got["result"]) != want {
			t.Errorf("deleted %v, want %s", got, want)
		}
	}
	bad, missing := http.StatusBadRequest, http.StatusNotFound
	a.want(bad, "messageNotString", "sendMessage", request{path: queue("q"), body: fields{"message": 1}})
	a.want(bad, "messageNotString", "sendMessage", request{path: queue("q")})
	a.want(bad, "invalidValue", "sendMessage", request{path: queue("q"), body: fields{"message": "m", "delay": -1}})
	a.want(bad, "messageTooLong", "sendMessage", request{path: queue("form"), body: fields{"message": strings.Repeat("x", 1025)}})
	a.want(missing, "queueNotFound", "sendMessage", request{path: queue("nope"), body: fields{"message": 1, "delay": -1}})
	a.want(bad, "invalidValue", "receiveMessage", request{path: queue("q"), query: url.Values{"vt": {"x"}}})
	a.want(missing, "queueNotFound", "receiveMessage", request{path: queue("nope")})
	a.want(bad, "invalidFormat", "popMessage", request{path: queue("a b")})
	a.want(missing, "queueNotFound", "popMessage", request{path: queue("nope")})
	a.want(bad, "invalidValue", "changeVisibility", request{path: one("q", id)})
	a.want(bad, "invalidFormat", "changeVisibility", request{path: one("q", "short"), query: url.Values{"vt": {"1"}}})
	a.want(missing, "queueNotFound", "changeVisibility", request{path: one("nope", id), query: url.Values{"vt": {"1"}}})
	a.want(bad, "invalidFormat", "deleteMessage", request{path: one("q", "short")})
}

// HEAD hides no message; routes and methods that there are none of are answered in JSON.
func TestOtherRequests(t *testing.T) {
	t.Parallel()
	a := serve(t, redistest.URL(t), Options{})
	a.want(http.StatusOK, "", "createQueue", request{path: queue("q")})
	a.want(http.StatusOK, "", "sendMessage", request{path: queue("q"), body: fields{"message": "m"}})
	if status, header, _ := a.raw(http.MethodHead, "/messages/q", nil, request{}); status != http.StatusMethodNotAllowed || header.Get("Allow") == "" {
		t.Errorf("HEAD: %d, %v", status, header)
	}
	for target, want := range map[string]string{
		"PATCH /messages/q": "405 methodNotAllowed", "DELETE /queues": "405 methodNotAllowed", "GET /": "404 notFound", "GET /message/q": "404 notFound",
		"POST /messages": "404 notFound", "GET /queues/a/b": "404 notFound",
		"GET //messages/q": "404 notFound", "POST /messages/q/../q": "404 notFound", "GET /messages/q/": "404 notFound",
	} {
		method, path, _ := strings.Cut(target, " ")
		status, header, answer := a.raw(method, path, nil, request{})
		code, name, _ := strings.Cut(want, " ")
		if fmt.Sprint(status) != code || !strings.Contains(string(answer), `"name":"`+name+`"`) || !strings.HasPrefix(header.Get("Content-Type"), "application/json") {
			t.Errorf("%s: %d %s; want %s", target, status, answer, want)
		}
	}
	if got := a.want(http.StatusOK, "", "receiveMessage", request{path: queue("q")}); fmt.Sprint(got["rc"]) != "1" {
		t.Errorf("received %v", got)
	}
}

// A query that cannot be read is an error: without it the request would be another one.
func TestMalformedQuery(t *testing.T) {
	t.Parallel()
	a := serve(t, redistest.URL(t), Options{})
	a.want(http.StatusOK, "", "createQueue", request{path: queue("q")})
	a.want(http.StatusOK, "", "sendMessage", request{path: queue("q"), body: fields{"message": "m"}})
	for _, query := range []string{"vt=%zz", "vt=1;vt=2"} {
		status, _, answer := a.raw(http.MethodGet, "/messages/q?"+query, nil, request{})
		if status != http.StatusBadRequest || !strings.Contains(string(answer), `"name":"invalidQuery"`) {
			t.Errorf("%s: %d %s", query, status, answer)
		}
	}
	if got := a.want(http.StatusOK, "", "receiveMessage", request{path: queue("q")}); fmt.Sprint(got["rc"]) != "1" {
		t.Errorf("received %v", got)
	}
}

// With CompatStatus every error of a queue is a 500, as in rest-rsmq.
func TestCompatStatus(t *testing.T) {
	t.Parallel()
	a := serve(t, redistest.URL(t), Options{CompatStatus: true})
	for _, target := range []string{"GET /queues/nope", "GET /messages/nope", "DELETE /queues/a.b", "PUT /queues/q", "POST /messages/nope"} {
		method, path, _ := strings.Cut(target, " ")
		status, _, answer := a.raw(method, path, []byte("{}"), request{})
		if status != http.StatusInternalServerError || !strings.Contains(string(answer), `"name":"`) {
			t.Errorf("%s: %d %s", target, status, answer)
		}
	}
}
