package main

import "time"

const channelCapacity = 100

func sendOften(to chan<- uint64, times uint64) {
	for i := uint64(0); i < times; i++ {
		to <- i
	}
}

// pass: goroutines that send through one channel, and goroutines that receive from it.
func pass(capacity int, senders, receivers, size uint64) result {
	through := make(chan uint64, capacity)
	done := make(chan uint64)
	start := time.Now()
	for i := uint64(0); i < receivers; i++ {
		go func() {
			count := uint64(0)
			for ; count < size/receivers; count++ {
				<-through
			}
			done <- count
		}()
	}
	for i := uint64(0); i < senders; i++ {
		go sendOften(through, size/senders)
	}
	received := uint64(0)
	for i := uint64(0); i < receivers; i++ {
		received += <-done
	}
	return result{value: nsPer(start, size), check: received}
}

// select8: eight goroutines send, each through a channel of its own; one selects among the eight.
func select8(size uint64) result {
	var from [8]chan uint64
	for i := range from {
		from[i] = make(chan uint64, channelCapacity)
	}
	done := make(chan uint64)
	start := time.Now()
	go func() {
		c0, c1, c2, c3, c4, c5, c6, c7 := from[0], from[1], from[2], from[3], from[4], from[5], from[6], from[7]
		count := uint64(0)
		for ; count < size; count++ {
			select {
			case <-c0:
			case <-c1:
			case <-c2:
			case <-c3:
			case <-c4:
			case <-c5:
			case <-c6:
			case <-c7:
			}
		}
		done <- count
	}()
	for _, to := range from {
		go sendOften(to, size/8)
	}
	check := <-done
	return result{value: nsPer(start, size), check: check}
}
