// SPDX-License-Identifier: MIT

package main

import (
	"sync"
	"sync/atomic"
)

func spawnAndJoin(size int) cost {
	var all sync.WaitGroup
	var finished atomic.Int64
	each := measureOnce(float64(size), func() {
		all.Add(size)
		for i := 0; i < size; i++ {
			go func() {
				finished.Add(1)
				all.Done()
			}()
		}
		all.Wait()
	})
	if finished.Load() != int64(size) {
		panic("a goroutine is missing")
	}
	return each
}

func spawnJoin(size int) {
	spawnAndJoin(size).report("spawn_cold", size, "ns")
	var each []cost
	for round := 0; round < 5; round++ {
		each = append(each, spawnAndJoin(size))
	}
	medianCost(each).report("spawn_join", size, "ns")
}

// The goroutines wait at a gate, because the scheduler would otherwise run and reuse some of them
// while others are still being made.
func childBytes(size int) {
	useSmallPages()
	var all sync.WaitGroup
	gate := make(chan struct{})
	child := func() {
		<-gate
		all.Done()
	}
	all.Add(size + 1)
	go child()
	before := bytesInUse()
	for i := 0; i < size; i++ {
		go child()
	}
	used := bytesInUse() - before
	report("child_bytes", size, float64(used)/float64(size), "B")
	close(gate)
	all.Wait()
}
