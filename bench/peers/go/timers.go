// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"sync"
	"time"
)

func timerChurn(size int) {
	pending := make([]*time.Timer, size)
	for i := range pending {
		pending[i] = time.NewTimer(farAway(i))
	}
	guard := time.NewTimer(time.Hour)
	guard.Stop()
	each := nanosecondsEach(5, size, func() {
		for i := 0; i < size; i++ {
			guard.Reset(time.Hour)
			guard.Stop()
		}
	})
	each.report("timer_churn", size, "ns")
	for _, timer := range pending {
		timer.Stop()
	}
}

func timerBulk(size int) {
	timers := make([]*time.Timer, size)
	for i := range timers {
		timers[i] = time.NewTimer(time.Hour)
		timers[i].Stop()
	}
	each := nanosecondsEach(5, size, func() {
		for i, timer := range timers {
			timer.Reset(farAway(i))
		}
		for _, timer := range timers {
			timer.Stop()
		}
	})
	each.report("timer_bulk", size, "ns")
}

// spawnSleepers returns once all goroutines have run and so are asleep, or about to be.
func spawnSleepers(ctx context.Context, size int, all *sync.WaitGroup) {
	var started sync.WaitGroup
	started.Add(size)
	all.Add(size)
	for i := 0; i < size; i++ {
		go func(index int) {
			defer all.Done()
			timer := time.NewTimer(farAway(index))
			defer timer.Stop()
			started.Done()
			select {
			case <-timer.C:
			case <-ctx.Done():
			}
		}(i)
	}
	started.Wait()
}

func sleeperBytes(size int) {
	useSmallPages()
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	spawnSleepers(ctx, 1, &all)
	before := bytesInUse()
	spawnSleepers(ctx, size, &all)
	used := bytesInUse() - before
	report("sleeper_bytes", size, float64(used)/float64(size), "B")
	cancel()
	all.Wait()
}

func cancelJoined(size int) {
	var rounds []float64
	for round := 0; round < 3; round++ {
		ctx, cancel := context.WithCancel(context.Background())
		var all sync.WaitGroup
		spawnSleepers(ctx, size, &all)
		asked := time.Now()
		cancel()
		all.Wait()
		rounds = append(rounds, float64(time.Since(asked).Nanoseconds())/1e6)
	}
	report("cancel_joined", size, median(rounds), "ms")
}
