// The rows task/* in Go: a goroutine for each part, which sends what it comes to over a channel.
package main

import "time"

const skynetWays = 10

func skynetIn(out chan<- uint64, number, leaves uint64) {
	if leaves == 1 {
		out <- number
		return
	}
	parts := make(chan uint64, skynetWays)
	for i := uint64(0); i < skynetWays; i++ {
		go skynetIn(parts, number+i*(leaves/skynetWays), leaves/skynetWays)
	}
	var sum uint64
	for i := 0; i < skynetWays; i++ {
		sum += <-parts
	}
	out <- sum
}

func skynet(leaves uint64) result {
	out := make(chan uint64, 1)
	began := time.Now()
	skynetIn(out, 0, leaves)
	sum := <-out
	return result{value: float64(time.Since(began).Nanoseconds()) / float64(leaves), check: sum}
}

func fibIn(n uint64, out chan<- uint64) {
	if n < 2 {
		out <- n
		return
	}
	one := make(chan uint64, 1)
	go fibIn(n-1, one)
	two := make(chan uint64, 1)
	fibIn(n-2, two)
	out <- <-one + <-two
}

func fib(n uint64) result {
	calls, before := uint64(1), uint64(1)
	for i := uint64(2); i <= n; i++ {
		calls, before = calls+before+1, calls
	}
	out := make(chan uint64, 1)
	began := time.Now()
	fibIn(n, out)
	value := <-out
	return result{value: float64(time.Since(began).Nanoseconds()) / float64(calls), check: value}
}
