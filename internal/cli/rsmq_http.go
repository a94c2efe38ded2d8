package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// httpLimits keep slow clients from holding the service.
type httpLimits struct {
	header, request, answer, idle time.Duration
	ending                        time.Duration // for the requests under way when it ends
}

var defaultLimits = httpLimits{
	header: 5 * time.Second, request: 30 * time.Second, answer: 60 * time.Second, idle: 2 * time.Minute, ending: 10 * time.Second,
}

// maxHeader is the most that the headers of a request may have, in bytes.
const maxHeader = 16 << 10

// serveHTTP serves until ctx ends, and then lets the requests under way end.
func serveHTTP(ctx context.Context, listener net.Listener, handler http.Handler, errOut io.Writer, limits httpLimits) error {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: limits.header,
		ReadTimeout:       limits.request,
		WriteTimeout:      limits.answer,
		IdleTimeout:       limits.idle,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          log.New(errOut, "", log.LstdFlags),
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	// What is under way must not end with the context that ends the service.
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), limits.ending)
	defer cancel()
	if err := server.Shutdown(grace); err != nil {
		return errors.Join(fmt.Errorf("requests did not end within %s and were cut off", limits.ending), server.Close())
	}
	return nil
}

// sameSite refuses what a browser sends on behalf of another site: by the site that it names, and by a host name that is not of this
// machine, which another site can let point here.
func sameSite(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin := r.Header.Get("Origin")
		site := r.Header.Get("Sec-Fetch-Site")
		foreign := origin != "" && origin != "http://"+r.Host || site != "" && site != "same-origin" && site != "none"
		if foreign || !localHost(r.Host) {
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"name":"forbidden","message":"Without a token, this service answers no other site and no other host name"}`+"\n")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// localHost reports that a host, with or without a port, is a name of this machine.
func localHost(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.ToLower(strings.Trim(name, "[]"))
	addr, err := netip.ParseAddr(name)
	return err == nil && addr.IsLoopback() || name == "localhost" || strings.HasSuffix(name, ".localhost")
}
