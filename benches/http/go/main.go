// Go's server of HTTP, with and without TLS: a goroutine a connection. go_http BENCH FOLDER.
package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
)

var hello = []byte("Hello, World!")

func say(to http.ResponseWriter, _ *http.Request) {
	to.Header()["Server"] = []string{"go"}
	to.Header()["Content-Type"] = []string{"text/plain"}
	to.Write(hello)
}

func main() {
	bench, folder := os.Args[1], os.Args[2]
	routes := http.NewServeMux()
	routes.HandleFunc("/plaintext", say)
	routes.HandleFunc("/hello", say)
	routes.Handle("/", http.FileServer(http.Dir(folder+"/files")))
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	server := &http.Server{Handler: routes}
	if strings.HasPrefix(bench, "tls_") || strings.HasPrefix(bench, "https_") {
		server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS13, SessionTicketsDisabled: bench != "tls_resumed"}
		server.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){} // no HTTP/2
		panic(server.ServeTLS(listener, folder+"/certificate.pem", folder+"/key.pem"))
	}
	panic(server.Serve(listener))
}
