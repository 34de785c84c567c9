// Goroutines that hand numbers to each other by channels without room.
package main

import (
	"fmt"
	"os"
)

func main() {
	there, back := make(chan int), make(chan int)
	for i := 0; i < 4; i++ {
		go func() {
			for n := range there {
				back <- n + 1
			}
		}()
	}
	fmt.Println("ready", os.Getpid())
	for i := 0; i < 2; i++ {
		go func() {
			for {
				there <- 1
			}
		}()
	}
	for range back {
	}
}
