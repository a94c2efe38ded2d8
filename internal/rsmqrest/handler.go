// Package rsmqrest serves RSMQ queues over HTTP: the routes and bodies of rest-rsmq, and more besides.
package rsmqrest

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	_ "embed"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/xstreamq/xstreamq/rsmq"
)

// Options are for one service.
type Options struct {
	// Token, if set, is what every request must carry as "Authorization: Bearer TOKEN", all but those for /health and /openapi.json.
	Token string
	// CompatStatus answers every error of a queue with 500, as rest-rsmq does.
	CompatStatus bool
	// MaxBody is the largest body of a request, in bytes. Default 1 MiB.
	MaxBody int64
	// Timeout bounds each operation. Default 5s.
	Timeout time.Duration
}

//go:embed openapi.json
var document []byte

// service answers requests for the queues of one client.
type service struct {
	client *rsmq.Client
	opts   Options
	token  [sha256.Size]byte
}

// New returns the service as a handler.
func New(client *rsmq.Client, o Options) http.Handler {
	if o.MaxBody <= 0 {
		o.MaxBody = 1 << 20
	}
	if o.Timeout <= 0 {
		o.Timeout = 5 * time.Second
	}
	s := &service{client: client, opts: o, token: sha256.Sum256([]byte(o.Token))}
	mux := http.NewServeMux()
	routes := map[string]func(context.Context, *input) (any, error){
		"GET /queues":                   s.listQueues,
		"POST /queues/{qname}":          s.createQueue,
		"GET /queues/{qname}":           s.getQueue,
		"PUT /queues/{qname}":           s.setQueue,
		"DELETE /queues/{qname}":        s.deleteQueue,
		"POST /messages/{qname}":        s.send,
		"GET /messages/{qname}":         s.receive,
		"POST /messages/{qname}/pop":    s.pop,
		"PUT /messages/{qname}/{id}":    s.changeVisibility,
		"DELETE /messages/{qname}/{id}": s.deleteMessage,
	}
	for pattern, operation := range routes {
		mux.HandleFunc(pattern, s.serve(operation))
	}
	mux.HandleFunc("GET /health", s.health)
	mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_, _ = w.Write(document) // the client hung up: nobody to tell
	})
	// A pattern for GET also takes HEAD, which must not receive a message to throw it away.
	mux.HandleFunc("HEAD /messages/{qname}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Allow", "GET, POST")
		w.WriteHeader(http.StatusMethodNotAllowed)
	})
	return s.guard(jsonErrors(mux))
}

// guard lets only those pass who know the token.
func (s *service) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		open := r.URL.Path == "/health" || r.URL.Path == "/openapi.json"
		if !open && !s.trusts(r) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="rsmq"`)
			fail(w, http.StatusUnauthorized, "unauthorized", "A bearer token is required")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// trusts reports that a request may be answered with anything.
func (s *service) trusts(r *http.Request) bool { return s.opts.Token == "" || s.knows(r) }

// knows compares the tokens in constant time, whatever their lengths.
func (s *service) knows(r *http.Request) bool {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	sum := sha256.Sum256([]byte(strings.TrimSpace(token)))
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(sum[:], s.token[:]) == 1
}

// serve reads the input of an operation and writes its result.
func (s *service) serve(operation func(context.Context, *input) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		in, err := s.read(w, r)
		if err != nil {
			s.refuse(w, err)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), s.opts.Timeout)
		defer cancel()
		result, err := operation(ctx, in)
		if err != nil {
			s.refuse(w, err)
			return
		}
		write(w, http.StatusOK, result)
	}
}

// refuse answers with an error: {"name":...,"message":...}.
func (s *service) refuse(w http.ResponseWriter, err error) {
	var malformed *requestError
	if errors.As(err, &malformed) {
		fail(w, malformed.status, malformed.name, malformed.message)
		return
	}
	status, name, message := classify(err)
	if s.opts.CompatStatus {
		status = http.StatusInternalServerError
	}
	fail(w, status, name, message)
}

// classify turns an error of the client into a status, with the error's name and message.
func classify(err error) (status int, name, message string) {
	var ours *rsmq.Error
	switch {
	case errors.Is(err, rsmq.ErrUncertain):
		return http.StatusBadGateway, "outcomeUnknown", "Redis did not answer; the operation may have been carried out"
	case !errors.As(err, &ours):
		return http.StatusServiceUnavailable, "ReplyError", err.Error()
	case errors.Is(err, rsmq.ErrQueueNotFound):
		status = http.StatusNotFound
	case errors.Is(err, rsmq.ErrQueueExists):
		status = http.StatusConflict
	default:
		status = http.StatusBadRequest
	}
	return status, ours.Name, ours.Message
}

// health says whether Redis answers.
func (s *service) health(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), s.opts.Timeout)
	defer cancel()
	if _, err := s.client.ListQueues(ctx); err != nil {
		problem := "Redis cannot be used; a request with the token is told why"
		if s.trusts(r) { // it may name addresses
			problem = err.Error()
		}
		write(w, http.StatusServiceUnavailable, map[string]any{"healthy": false, "problem": problem})
		return
	}
	write(w, http.StatusOK, map[string]any{"healthy": true})
}
