// SPDX-License-Identifier: MIT

// The servers of io_load in Go, see io/load.cpp: `go_servers io_echo|io_http PORT BUFFER`.
package main

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
)

func echo(c net.Conn, size int) {
	defer c.Close()
	buffer := make([]byte, size)
	for {
		n, err := c.Read(buffer)
		if err != nil {
			return
		}
		if _, err = c.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func serveEcho(l net.Listener, size int) {
	for {
		c, err := l.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go echo(c, size)
	}
}

func hello(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	io.WriteString(w, "hello, world\n")
}

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: go_servers io_echo|io_http PORT BUFFER")
	}
	size, err := strconv.Atoi(os.Args[3])
	if err != nil || size <= 0 {
		log.Fatal("no size of a buffer: ", os.Args[3])
	}
	l, err := net.Listen("tcp", "127.0.0.1:"+os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(l.Addr().(*net.TCPAddr).Port)
	switch os.Args[1] {
	case "io_echo":
		serveEcho(l, size)
	case "io_http":
		log.Fatal(http.Serve(l, http.HandlerFunc(hello)))
	default:
		log.Fatal("no server ", os.Args[1])
	}
}
