// Package testdata holds real payloads for tests and for the demonstration. README.md says where they are from.
package testdata

import _ "embed"

// GitHubWebhooks is github-webhooks.jsonl.gz: 329 webhook payloads of GitHub, gzip of one JSON object a line with the fields
// event and payload.
//
//go:embed github-webhooks.jsonl.gz
var GitHubWebhooks []byte
