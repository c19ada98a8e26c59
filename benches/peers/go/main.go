// The benchmarks in Go: an actor is a goroutine with a channel for its mailbox. ../../README.md says what
// each measures.
//
// Channels are bounded, since Go has no others; their capacities are as large as helps. A sender that runs
// ahead waits for room, so no sender needs slices.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

type result struct {
	value    float64
	check    uint64
	fairness float64 // chameneos only; 0 elsewhere
}

type benchmark struct {
	defaultSize uint64
	run         func(size uint64) result
}

var benchmarks = map[string]benchmark{
	"ping_pong":            {2_000_000, pingPong},
	"counting":             {10_000_000, counting},
	"fork_join_throughput": {100_000, forkJoinThroughput},
	"fork_join_create":     {1_000_000, forkJoinCreate},
	"thread_ring_100":      {2_000_003, func(hops uint64) result { return threadRing(100, hops) }},
	"thread_ring_10000":    {2_000_003, func(hops uint64) result { return threadRing(10_000, hops) }},
	"big":                  {20_000, big},
	"chameneos":            {1_000_000, chameneos},
	"idle_memory":          {500_000, idleMemory},
	"idle_cpu":             {10, idleCPU},
	"ask":                  {2_000_000, askOften},
	"ask_chain":            {40_000, askChain},
	"spawn":                {10_000_000, spawnAndJoin},
	"switch":               {5_000_000, handOver},
	"memory":               {1_000_000, sleepingMemory},
	"timers":               {1_000_000, timers},
	"fib":                  {34, fib},
	"skynet":               {1_000_000, skynet},
	"channel_1_1":          {10_000_000, func(size uint64) result { return pass(channelCapacity, 1, 1, size) }},
	"channel_4_1":          {10_000_000, func(size uint64) result { return pass(channelCapacity, 4, 1, size) }},
	"channel_4_4":          {10_000_000, func(size uint64) result { return pass(channelCapacity, 4, 4, size) }},
	"rendezvous":           {5_000_000, func(size uint64) result { return pass(0, 1, 1, size) }},
	"select_8":             {4_000_000, select8},
}

func main() {
	if len(os.Args) < 3 || len(os.Args) > 4 {
		usage()
	}
	b, known := benchmarks[os.Args[1]]
	if !known {
		usage()
	}
	runtime.GOMAXPROCS(int(positive(os.Args[2])))
	size := b.defaultSize
	if len(os.Args) == 4 {
		size = positive(os.Args[3])
	}
	r := b.run(size)
	fmt.Printf("value=%.4f check=%d", r.value, r.check)
	if r.fairness > 0 {
		fmt.Printf(" fairness=%.3f", r.fairness)
	}
	fmt.Println()
}

func usage() {
	fmt.Fprintf(os.Stderr, "usage: %s BENCH WORKERS [SIZE]\nbenches:", os.Args[0])
	for name := range benchmarks {
		fmt.Fprint(os.Stderr, " ", name)
	}
	fmt.Fprintln(os.Stderr)
	os.Exit(2)
}

func positive(text string) uint64 {
	number, err := strconv.ParseUint(text, 10, 64)
	if err != nil || number == 0 {
		fmt.Fprintln(os.Stderr, "not a positive whole number:", text)
		os.Exit(2)
	}
	return number
}

func nsPer(start time.Time, operations uint64) float64 {
	return float64(time.Since(start).Nanoseconds()) / float64(operations)
}

// idleCPU: a runtime with one goroutine that waits, and nothing to do.
func idleCPU(seconds uint64) result {
	ask := make(chan uint64)
	answer := make(chan uint64)
	go func() {
		for x := range ask {
			answer <- x
		}
	}()
	ask <- 0
	<-answer
	time.Sleep(500 * time.Millisecond) // threads that spin before they sleep have their time
	start := time.Now()
	cpuStart := processCPU()
	time.Sleep(time.Duration(seconds) * time.Second)
	cpu := processCPU() - cpuStart
	value := cpu.Seconds() * 1e3 / time.Since(start).Seconds()
	ask <- 1
	return result{value: value, check: <-answer}
}

// processCPU is the CPU time of all threads of this process, in the kernel's own nanoseconds; what
// getrusage tells is coarser than what an idle runtime uses.
func processCPU() time.Duration {
	const clockProcessCPUTime = 2
	var t syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockProcessCPUTime, uintptr(unsafe.Pointer(&t)), 0)
	if errno != 0 {
		panic(errno)
	}
	return time.Duration(t.Nano())
}

func residentBytes() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		panic(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	if err != nil {
		panic(err)
	}
	return pages * int64(os.Getpagesize())
}
