package rsmqrest

import (
	"context"
	"encoding/json"
	"net/http"
	"path"

	"github.com/xstreamq/xstreamq/rsmq"
)

func (s *service) listQueues(ctx context.Context, _ *input) (any, error) {
	names, err := s.client.ListQueues(ctx)
	if names == nil {
		names = []string{}
	}
	return map[string]any{"queues": names}, err
}

func (s *service) createQueue(ctx context.Context, in *input) (any, error) {
	return done(true, s.client.CreateQueue(ctx, in.queue, rsmq.QueueOptions{
		VisibilityTimeout: in.seconds("vt"), Delay: in.seconds("delay"), MaxSize: in.size("maxsize"),
	}))
}

func (s *service) getQueue(ctx context.Context, in *input) (any, error) {
	return s.client.GetQueueAttributes(ctx, in.queue)
}

func (s *service) setQueue(ctx context.Context, in *input) (any, error) {
	return s.client.SetQueueAttributes(ctx, in.queue, rsmq.QueueChanges{
		VisibilityTimeout: in.seconds("vt"), Delay: in.seconds("delay"), MaxSize: in.size("maxsize"),
	})
}

func (s *service) deleteQueue(ctx context.Context, in *input) (any, error) {
	return done(true, s.client.DeleteQueue(ctx, in.queue))
}

func (s *service) send(ctx context.Context, in *input) (any, error) {
	body, ok := in.body["message"].(string)
	if !ok {
		body = "\xff" // no text, which the client refuses in its turn
	}
	id, err := s.client.SendMessage(ctx, in.queue, body, rsmq.SendOptions{Delay: in.seconds("delay")})
	return map[string]any{"id": id}, err
}

func (s *service) receive(ctx context.Context, in *input) (any, error) {
	return message(s.client.ReceiveMessage(ctx, in.queue, rsmq.ReceiveOptions{VisibilityTimeout: in.seconds("vt")}))
}

func (s *service) pop(ctx context.Context, in *input) (any, error) {
	return message(s.client.PopMessage(ctx, in.queue))
}

func (s *service) changeVisibility(ctx context.Context, in *input) (any, error) {
	vt := in.seconds("vt")
	if vt == nil {
		vt = rsmq.Seconds(-1) // it is required
	}
	return done(s.client.ChangeMessageVisibility(ctx, in.queue, in.id, *vt))
}

func (s *service) deleteMessage(ctx context.Context, in *input) (any, error) {
	return done(s.client.DeleteMessage(ctx, in.queue, in.id))
}

func done(ok bool, err error) (any, error) {
	if ok {
		return map[string]int{"result": 1}, err
	}
	return map[string]int{"result": 0}, err
}

// message is an empty object when there is none.
func message(m rsmq.Message, ok bool, err error) (any, error) {
	if !ok {
		return struct{}{}, err
	}
	return m, err
}

func write(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(v) // the client hung up: nobody to tell
}

func fail(w http.ResponseWriter, status int, name, message string) {
	write(w, status, rsmq.Error{Name: name, Message: message})
}

// jsonErrors makes JSON of the mux's own answers: unknown routes and methods. A path with empty or dotted parts is unknown; the mux would redirect
// it.
func jsonErrors(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != path.Clean(r.URL.Path) {
			notFound(w)
			return
		}
		if _, pattern := mux.Handler(r); pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		probe := &statusOnly{header: w.Header()}
		mux.ServeHTTP(probe, r)
		if probe.status == http.StatusMethodNotAllowed {
			fail(w, probe.status, "methodNotAllowed", "Cannot "+r.Method+" here; allowed: "+w.Header().Get("Allow"))
			return
		}
		notFound(w)
	})
}

func notFound(w http.ResponseWriter) {
	fail(w, http.StatusNotFound, "notFound", "There is nothing here; see /openapi.json")
}

// statusOnly keeps the status and the headers of an answer.
type statusOnly struct {
	header http.Header
	status int
}

func (p *statusOnly) Header() http.Header         { return p.header }
func (p *statusOnly) Write(b []byte) (int, error) { return len(b), nil }
func (p *statusOnly) WriteHeader(status int)      { p.status = status }
