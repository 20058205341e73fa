// SPDX-License-Identifier: MIT

package main

import (
	"runtime"
	"sync"
	"time"
)

// A fixed number of goroutines behind a bounded channel: what a pool is in Go. A job is a function.
// The jobs shall run beside whoever submits them, so there is a thread for each of them.
func poolOf(workers, size int) float64 {
	runtime.GOMAXPROCS(workers + 1)
	jobs := make(chan func(), 1024)
	var done, ended sync.WaitGroup
	ended.Add(workers)
	for i := 0; i < workers; i++ {
		go func() {
			defer ended.Done()
			for job := range jobs {
				job()
			}
		}()
	}
	each := nanosecondsEach(5, size, func() {
		done.Add(size)
		for i := 0; i < size; i++ {
			jobs <- func() { done.Done() }
		}
		done.Wait()
	})
	close(jobs)
	ended.Wait()
	return each
}

func poolJobs(size int) {
	report("pool_1", size, poolOf(1, size), "ns")
	report("pool_2", size, poolOf(2, size), "ns")
}

// Both goroutines have a thread of their own, as two loops have: without that Go would run them on
// one thread and compare a channel with a message between threads.
func onTrip(size int) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	there := make(chan int)
	back := make(chan int)
	go func() {
		runtime.LockOSThread()
		for value := range there {
			back <- value + 1
		}
		close(back)
	}()
	each := nanosecondsEach(3, size, func() {
		value := 0
		for i := 0; i < size; i++ {
			there <- value
			value = <-back
		}
		opaque(value)
	})
	close(there)
	<-back
	report("on_trip", size, each, "ns")
}

// Go moves other goroutines away from a thread that blocks, so a call that may block needs no other
// thread; one that shall not hold up its caller is a goroutine with a channel.
func blockingTrip(size int) {
	each := nanosecondsEach(3, size, func() {
		value := 0
		for i := 0; i < size; i++ {
			result := make(chan int, 1)
			go func() { result <- value + 1 }()
			value = <-result
		}
		opaque(value)
	})
	report("blocking_trip", size, each, "ns")
}

// settle lets goroutines that have nothing left to do but to park do so.
func settle() {
	for i := 0; i < 10; i++ {
		runtime.Gosched()
	}
	time.Sleep(20 * time.Microsecond)
}
