package main

import (
	"runtime"
	"time"
)

// ---- big: each actor pings others --------------------------------------------------------------------

type crowdKind uint8

const (
	start crowdKind = iota
	ping
	pong
	report
)

type crowdMessage struct {
	from chan crowdMessage // of a ping; nil elsewhere
	kind crowdKind
}

func big(pings uint64) result {
	const members = 120
	var crowd [members]chan crowdMessage
	for i := range crowd {
		// Holds a ping of every member, so that no two can wait for each other.
		crowd[i] = make(chan crowdMessage, 512)
	}
	done := make(chan uint64, members)
	member := func(index uint64) {
		mailbox := crowd[index]
		random := index*0x9E3779B97F4A7C15 + 1
		left, answered := pings, uint64(0)
		for m := range mailbox {
			switch m.kind {
			case ping:
				answered++
				m.from <- crowdMessage{kind: pong}
				continue
			case report:
				done <- answered
				return
			case pong:
				if left--; left == 0 {
					done <- 0
					continue
				}
			}
			random ^= random << 13
			random ^= random >> 7
			random ^= random << 17
			crowd[(random>>32)*members>>32] <- crowdMessage{kind: ping, from: mailbox}
		}
	}
	for i := range crowd {
		go member(uint64(i))
	}

	begin := time.Now()
	for _, mailbox := range crowd {
		mailbox <- crowdMessage{kind: start}
	}
	for range crowd {
		<-done
	}
	r := result{value: nsPer(begin, pings*members)}
	for _, mailbox := range crowd {
		mailbox <- crowdMessage{kind: report}
	}
	for range crowd {
		r.check += <-done
	}
	return r
}

// ---- chameneos: creatures meet in pairs and take a colour from both --------------------------------------

type chameneosKind uint8

const (
	ask chameneosKind = iota
	meet
	change
	stop
)

type chameneosMessage struct {
	from   chan chameneosMessage // the asker, then whom to tell the new colour
	kind   chameneosKind
	colour uint8
}

// complement of three colours: the same if both agree, else the one neither has.
func complement(a, b uint8) uint8 {
	if a == b {
		return a
	}
	return 3 - a - b
}

func mall(mailbox <-chan chameneosMessage, meetings uint64) {
	var waiting chan chameneosMessage
	for m := range mailbox {
		switch {
		case meetings == 0:
			m.from <- chameneosMessage{kind: stop}
		case waiting == nil:
			waiting = m.from
		default:
			meetings--
			waiting <- chameneosMessage{kind: meet, colour: m.colour, from: m.from}
			waiting = nil
		}
	}
}

func creature(colour uint8, place chan<- chameneosMessage, done chan<- uint64) {
	mailbox := make(chan chameneosMessage, 8)
	met := uint64(0)
	place <- chameneosMessage{kind: ask, colour: colour, from: mailbox}
	for m := range mailbox {
		switch m.kind {
		case meet:
			met++
			colour = complement(colour, m.colour)
			m.from <- chameneosMessage{kind: change, colour: colour}
		case change:
			met++
			colour = m.colour
		case stop:
			done <- met
			return
		}
		place <- chameneosMessage{kind: ask, colour: colour, from: mailbox}
	}
}

func chameneos(meetings uint64) result {
	const creatures = 100
	place := make(chan chameneosMessage, 256)
	done := make(chan uint64, creatures)
	go mall(place, meetings)
	begin := time.Now()
	for i := 0; i < creatures; i++ {
		go creature(uint8(i%3), place, done)
	}
	sum, most, least := uint64(0), uint64(0), ^uint64(0)
	for i := 0; i < creatures; i++ {
		met := <-done
		sum += met
		if met > most {
			most = met
		}
		if met < least {
			least = met
		}
	}
	if least == 0 {
		least = 1
	}
	return result{value: nsPer(begin, meetings), check: sum / 2, fairness: float64(most) / float64(least)}
}

// ---- idle_memory: goroutines that do nothing ---------------------------------------------------------------

func idleMemory(size uint64) result {
	handles := make([]chan uint64, size)
	for i := range handles {
		handles[i] = nil // touches the array
	}
	answers := make(chan uint64)
	runtime.GC()
	before := residentBytes()
	for i := range handles {
		mailbox := make(chan uint64)
		handles[i] = mailbox
		go func(state uint64) {
			for x := range mailbox {
				state += x
				answers <- state
			}
		}(uint64(i))
	}
	time.Sleep(time.Second)
	r := result{value: float64(residentBytes()-before) / float64(size)}
	for i, mailbox := range handles {
		mailbox <- 1
		if <-answers == uint64(i)+1 {
			r.check++
		}
	}
	return r
}
