package main

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// ---- ask: one goroutine asks another, and waits for the answer before it asks again -------------------

type request struct {
	number uint64
	reply  chan<- uint64
}

// askOften: the asker keeps its reply channel, since a new one for each ask would take longer.
func askOften(times uint64) result {
	mailbox := make(chan request)
	done := make(chan uint64)
	go func() {
		for r := range mailbox {
			r.reply <- r.number + 1
		}
	}()
	start := time.Now()
	go func() {
		reply := make(chan uint64)
		number := uint64(0)
		for number < times {
			mailbox <- request{number, reply}
			number = <-reply
		}
		done <- number
	}()
	check := <-done
	return result{value: nsPer(start, times), check: check}
}

// ---- ask_chain: each goroutine asks the next one, and answers when that has ----------------------------

// startLink starts a goroutine with a mailbox, which starts and asks the next one.
func startLink() chan<- request {
	mailbox := make(chan request)
	go func() {
		for r := range mailbox {
			behind := uint64(0)
			if r.number != 0 {
				next := startLink()
				behind = 1 + askLink(next, r.number-1)
				close(next)
			}
			r.reply <- behind
		}
	}()
	return mailbox
}

func askLink(link chan<- request, left uint64) uint64 {
	reply := make(chan uint64)
	link <- request{left, reply}
	return <-reply
}

func askChain(links uint64) result {
	done := make(chan uint64)
	start := time.Now()
	go func() {
		first := startLink()
		done <- askLink(first, links)
		close(first)
	}()
	check := <-done
	return result{value: nsPer(start, links), check: check}
}

// ---- spawn: goroutines that do nothing, a thousand at a time -------------------------------------------

func spawnAndJoin(size uint64) result {
	var ended atomic.Uint64
	var running sync.WaitGroup
	done := make(chan struct{})
	start := time.Now()
	go func() {
		for left := size; left > 0; {
			now := left
			if now > 1000 {
				now = 1000
			}
			running.Add(int(now))
			for i := uint64(0); i < now; i++ {
				go func() {
					ended.Add(1)
					running.Done()
				}()
			}
			running.Wait()
			left -= now
		}
		done <- struct{}{}
	}()
	<-done
	return result{value: nsPer(start, size), check: ended.Load()}
}

// ---- switch: two goroutines, each of which waits for the other -------------------------------------------

func handOver(size uint64) result {
	var turn [2]chan uint64
	for i := range turn {
		turn[i] = make(chan uint64)
	}
	done := make(chan uint64)
	takeTurns := func(me int) {
		for handOvers := range turn[me] {
			if handOvers == size {
				done <- handOvers
				return
			}
			turn[1-me] <- handOvers + 1
		}
	}
	go takeTurns(0)
	go takeTurns(1)
	start := time.Now()
	turn[0] <- 0
	check := <-done
	return result{value: nsPer(start, size), check: check}
}

// ---- memory: goroutines that sleep for an hour -------------------------------------------------------------

func sleepingMemory(size uint64) result {
	var begun, ended atomic.Uint64
	runtime.GC()
	before := residentBytes()
	for i := uint64(0); i < size; i++ {
		go func() {
			begun.Add(1)
			time.Sleep(time.Hour)
			ended.Add(1)
		}()
	}
	for begun.Load() < size {
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(500 * time.Millisecond) // the last ones fall asleep
	return result{value: float64(residentBytes()-before) / float64(size), check: begun.Load() - ended.Load()}
}

// ---- timers: all are armed, then all are stopped in time -----------------------------------------------------

func armAndCancel(handles []*time.Timer) uint64 {
	for i := range handles {
		handles[i] = time.AfterFunc(time.Hour, func() {})
	}
	stopped := uint64(0)
	for _, one := range handles {
		if one.Stop() {
			stopped++
		}
	}
	return stopped
}

// Once before the clock starts, so that the memory is there.
func timers(size uint64) result {
	handles := make([]*time.Timer, size)
	armAndCancel(handles)
	start := time.Now()
	check := armAndCancel(handles)
	return result{value: nsPer(start, size), check: check}
}
