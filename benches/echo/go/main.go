// Go's echo server: a goroutine a connection.
package main

import (
	"fmt"
	"net"
)

func echo(peer net.Conn) {
	defer peer.Close()
	buffer := make([]byte, 4096)
	for {
		bytes, err := peer.Read(buffer)
		if err != nil {
			return
		}
		if _, err := peer.Write(buffer[:bytes]); err != nil {
			return
		}
	}
}

func main() {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	for {
		peer, err := listener.Accept()
		if err != nil {
			panic(err)
		}
		go echo(peer)
	}
}
