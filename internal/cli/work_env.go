package cli

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/xstreamq/xstreamq"
)

// envPrefix begins the names of the variables that tell a command about its message.
const envPrefix = "XSTREAMQ_"

// inherited is the environment that commands share: all of ours, but for what a worker that this one was started by has said of
// a message of its own.
func inherited(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return strings.HasPrefix(name, envPrefix+"HEADER") || slices.Contains(messageVariables, strings.TrimPrefix(name, envPrefix))
	})
}

var messageVariables = []string{
	"ID", "ORIGINAL_ID", "QUEUE", "GROUP", "ATTEMPT", "RETRIES", "LOST_LEASES", "PUBLISHED_AT",
}

// environment says of a message what a command may want to know. A value that holds a NUL cannot be there.
func environment(m *xstreamq.Delivery) []string {
	published := ""
	if at := stamp(m.PublishedAt); at != nil {
		published = *at
	}
	values := []string{
		m.ID, m.OriginalID, m.Queue, m.Group, strconv.Itoa(m.Attempt), strconv.Itoa(m.Retries), strconv.Itoa(m.LostLeases), published,
	}
	variables := make([]string, 0, len(values)+len(m.Header)+2)
	for i, name := range messageVariables {
		variables = append(variables, envPrefix+name+"="+values[i])
	}
	exact := newPayload(nil, m.Header, "")
	variables = append(variables, envPrefix+"HEADERS="+headerJSON(exact.Header))
	if exact.HeaderBase64 != nil {
		variables = append(variables, envPrefix+"HEADERS_BASE64="+headerJSON(exact.HeaderBase64))
	}
	variables = append(variables, headerVariables(m.Header)...)
	return slices.DeleteFunc(variables, func(v string) bool { return strings.ContainsRune(v, 0) })
}

// headerVariables makes a variable of each header whose value can be one. Where two names become the same, the one that is
// first in the order of their bytes wins.
func headerVariables(header map[string]string) []string {
	var variables []string
	taken := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(header)) {
		variable := envPrefix + "HEADER_" + strings.Map(variableRune, name)
		if taken[variable] || strings.ContainsRune(header[name], 0) {
			continue
		}
		taken[variable] = true
		variables = append(variables, variable+"="+header[name])
	}
	return variables
}

func variableRune(r rune) rune {
	switch {
	case r >= 'a' && r <= 'z':
		return r - 'a' + 'A'
	case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		return r
	}
	return '_'
}

// headerJSON is an object of names and values, {} when there are none. No NUL can be in it: JSON escapes that.
func headerJSON(header map[string]string) string {
	if header == nil {
		return "{}"
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(header) // strings can always be encoded
	return strings.TrimSuffix(text.String(), "\n")
}
