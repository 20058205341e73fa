// SPDX-License-Identifier: MIT

package main

import (
	"runtime"
	"sync"
	"time"
)

// A fixed number of goroutines behind a bounded channel: what a pool is in Go. A job is a function.
// The jobs run beside the goroutine that submits them, so there is a thread for each of them.
type pool struct {
	jobs  chan func()
	ended sync.WaitGroup
}

func startPool(workers int) *pool {
	runtime.GOMAXPROCS(workers + 1)
	p := &pool{jobs: make(chan func(), 1024)}
	p.ended.Add(workers)
	for i := 0; i < workers; i++ {
		go func() {
			defer p.ended.Done()
			for job := range p.jobs {
				job()
			}
		}()
	}
	return p
}

func (p *pool) end() {
	close(p.jobs)
	p.ended.Wait()
}

func fire(row string, workers, size int) {
	p := startPool(workers)
	var done sync.WaitGroup
	each := nanosecondsEach(5, size, func() {
		done.Add(size)
		for i := 0; i < size; i++ {
			p.jobs <- func() { done.Done() }
		}
		done.Wait()
	})
	p.end()
	each.report(row, size, "ns")
}

// The results come back through one channel, to a goroutine of the submitter.
func results(row string, workers, size int) {
	p := startPool(workers)
	answers := make(chan int, 1024)
	each := nanosecondsEach(5, size, func() {
		go func() {
			for i := 0; i < size; i++ {
				value := i
				p.jobs <- func() { answers <- value + 1 }
			}
		}()
		sum := 0
		for i := 0; i < size; i++ {
			sum += <-answers
		}
		opaque(sum)
	})
	p.end()
	each.report(row, size, "ns")
}

func poolJobs(size int) {
	fire("pool_1", 1, size)
	fire("pool_2", 2, size)
	results("result_1", 1, size)
	results("result_2", 2, size)
}

// burn is the chain of multiplications of support/burn.hpp.
func burn(steps int, x uint64) uint64 {
	for i := 0; i < steps; i++ {
		x = x*6364136223846793005 + 1442695040888963407
	}
	return x
}

func stepsFor(nanoseconds float64) int {
	const trial = 100000
	best := 1e9
	for i := 0; i < 20; i++ {
		start := time.Now()
		opaque(int(burn(trial, uint64(i)) & 1))
		if each := float64(time.Since(start).Nanoseconds()) / trial; each < best {
			best = each
		}
	}
	return int(nanoseconds / best)
}

// The work is `size` microseconds altogether, and ideally two cores do it in half of that.
func busy(row string, microseconds, size, cores int) {
	steps := stepsFor(float64(microseconds) * 1000)
	p := startPool(2)
	var done sync.WaitGroup
	jobs := size / microseconds
	each := nanosecondsEach(5, jobs*microseconds*1000, func() {
		done.Add(jobs)
		for i := 0; i < jobs; i++ {
			seed := uint64(i)
			p.jobs <- func() {
				if burn(steps, seed) == 1 {
					panic("never")
				}
				done.Done()
			}
		}
		done.Wait()
	})
	p.end()
	cost{each.wall * float64(cores), each.cpu}.report(row, size, "x")
}

func busyJobs(size int) {
	cores := runtime.NumCPU() // those that this process may use
	if cores > 2 {
		cores = 2
	}
	busy("busy_1us", 1, size, cores)
	busy("busy_10us", 10, size, cores)
}

// Both goroutines have a thread of their own, as two loops have: without that Go would run them on
// one thread and compare a channel with a message between threads.
func trips(row string, size, inFlight int) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	there := make(chan int, inFlight-1)
	back := make(chan int, inFlight-1)
	go func() {
		runtime.LockOSThread()
		for value := range there {
			back <- value + 1
		}
		close(back)
	}()
	each := nanosecondsEach(5, size, func() {
		value, sent := 0, 0
		for ; sent < inFlight && sent < size; sent++ {
			there <- value
		}
		for received := 0; received < size; received++ {
			value = <-back
			if sent < size {
				there <- value
				sent++
			}
		}
		opaque(value)
	})
	close(there)
	<-back
	each.report(row, size, "ns")
}

func onTrip(size int) {
	trips("on_trip", size, 1)
	trips("on_64", size, 64)
}

// Go moves other goroutines away from a thread that blocks, so a call that may block needs no other
// thread; one that must not hold up its caller is a goroutine with a channel.
func callInTurn(calls int) {
	value := 0
	for i := 0; i < calls; i++ {
		result := make(chan int, 1)
		go func() { result <- value + 1 }()
		value = <-result
	}
	if value != calls {
		panic("a call is missing")
	}
}

func blockingTrip(size int) {
	nanosecondsEach(5, size, func() { callInTurn(size) }).report("blocking_trip", size, "ns")
	const callers = 64
	nanosecondsEach(5, size, func() {
		var all sync.WaitGroup
		all.Add(callers)
		for i := 0; i < callers; i++ {
			share := (size + i) / callers // together they are all
			go func() {
				callInTurn(share)
				all.Done()
			}()
		}
		all.Wait()
	}).report("blocking_64", size, "ns")
}

// Every call is a goroutine, and its value comes through a channel.
func fib(n int, result chan<- int) {
	if n < 2 {
		result <- n
		return
	}
	parts := make(chan int, 2)
	go fib(n-1, parts)
	go fib(n-2, parts)
	result <- <-parts + <-parts
}

func allRecursion(size int) {
	calls, before := 1, 1 // of fib(1) and fib(0)
	for n := 2; n <= size; n++ {
		calls, before = calls+before+1, calls
	}
	nanosecondsEach(5, calls, func() {
		result := make(chan int, 1)
		go fib(size, result)
		opaque(<-result)
	}).report("all_recursion", size, "ns")
}

// settle lets goroutines that have nothing left to do but to park do so.
func settle() {
	for i := 0; i < 10; i++ {
		runtime.Gosched()
	}
	time.Sleep(20 * time.Microsecond)
}
