// A Go program that the C compiler links, because it has C.
package main

// static int one(void) { return 1; }
import "C"

import "os"

var sink int

//go:noinline
func spin(n int) int {
	for i := 0; i < n; i++ {
		sink = sink*31 + i
	}
	return sink
}

//go:noinline
func turn() int {
	return spin(10000000) + int(C.one())
}

func main() {
	os.Stdout.WriteString("ready\n")
	for {
		turn()
	}
}
