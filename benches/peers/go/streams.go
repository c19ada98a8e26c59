package main

import (
	"sync/atomic"
	"time"
)

// pingPong: the number goes there and back, one more each time. Channels without a buffer: here the fastest,
// as a send hands over to the receiver at once.
func pingPong(rounds uint64) result {
	ping := make(chan uint64)
	pong := make(chan uint64)
	done := make(chan uint64)
	go func() {
		for number := range ping {
			pong <- number + 1
		}
	}()
	start := time.Now()
	go func() {
		number := uint64(0)
		for i := uint64(0); i < rounds; i++ {
			ping <- number
			number = <-pong
		}
		done <- number
	}()
	check := <-done
	return result{value: nsPer(start, rounds), check: check}
}

// mailboxCapacity is what the senders of counting and fork_join_throughput may run ahead.
const mailboxCapacity = 1024

// startCounter counts messages up to `size` and reports the count.
func startCounter(size uint64, done chan<- uint64) chan<- struct{} {
	mailbox := make(chan struct{}, mailboxCapacity)
	go func() {
		count := uint64(0)
		for count < size {
			<-mailbox
			count++
		}
		done <- count
	}()
	return mailbox
}

// counting: one sender, one counter.
func counting(size uint64) result {
	done := make(chan uint64)
	counter := startCounter(size, done)
	start := time.Now()
	go func() {
		for i := uint64(0); i < size; i++ {
			counter <- struct{}{}
		}
	}()
	check := <-done
	return result{value: nsPer(start, size), check: check}
}

// forkJoinThroughput: one sender, 60 counters, round robin.
func forkJoinThroughput(rounds uint64) result {
	const actors = 60
	done := make(chan uint64)
	var counters [actors]chan<- struct{}
	for i := range counters {
		counters[i] = startCounter(rounds, done)
	}
	start := time.Now()
	go func() {
		for i := uint64(0); i < rounds; i++ {
			for _, counter := range counters {
				counter <- struct{}{}
			}
		}
	}()
	r := result{}
	for range counters {
		r.check += <-done
	}
	r.value = nsPer(start, rounds*actors)
	return r
}

// forkJoinCreate: a goroutine is started, receives one message and ends.
func forkJoinCreate(size uint64) result {
	var handled atomic.Uint64
	done := make(chan uint64)
	start := time.Now()
	go func() {
		for i := uint64(0); i < size; i++ {
			mailbox := make(chan struct{}, 1)
			go func() {
				<-mailbox
				if n := handled.Add(1); n == size {
					done <- n
				}
			}()
			mailbox <- struct{}{}
		}
	}()
	check := <-done
	return result{value: nsPer(start, size), check: check}
}

// threadRing: one token, handed on until its hops are used up.
func threadRing(members int, hops uint64) result {
	ring := make([]chan uint64, members)
	for i := range ring {
		ring[i] = make(chan uint64, 1)
	}
	done := make(chan int)
	for i := range ring {
		go func(index int, mailbox <-chan uint64, next chan<- uint64) {
			for hopsLeft := range mailbox {
				if hopsLeft == 0 {
					done <- index
				} else {
					next <- hopsLeft - 1
				}
			}
		}(i, ring[i], ring[(i+1)%members])
	}
	ring[0] <- uint64(members) // once round, so that all wait before the clock starts
	<-done
	start := time.Now()
	ring[0] <- hops
	last := <-done
	r := result{value: nsPer(start, hops)}
	if uint64(last) == hops%uint64(members) {
		r.check = hops
	}
	return r
}
