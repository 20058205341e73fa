// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"time"
)

//go:noinline
func ready(value int) int { return value }

// A Go function that might block is called like any other: what weir pays a coroutine frame for,
// Go pays with the goroutine's stack. The call is shown for scale.
func awaitReady(size int) {
	each := nanosecondsEach(7, size, func() {
		sum := 0
		for i := 0; i < size; i++ {
			sum += ready(i)
		}
		opaque(sum)
	})
	each.report("await_ready", size, "ns")
}

//go:noinline
func readyWithin(ctx context.Context, value int) int {
	if ctx.Err() != nil {
		return 0
	}
	return value
}

// The idiom without a goroutine: the operation gets the context and looks at it.
func timeoutReady(size int) {
	background := context.Background()
	each := nanosecondsEach(3, size, func() {
		sum := 0
		for i := 0; i < size; i++ {
			ctx, cancel := context.WithTimeout(background, time.Hour)
			sum += readyWithin(ctx, i)
			cancel()
		}
		opaque(sum)
	})
	each.report("timeout_ready", size, "ns")
}

// A buffered channel is Go's semaphore.
func governor(size int) {
	permits := make(chan struct{}, 1)
	each := nanosecondsEach(7, size, func() {
		for i := 0; i < size; i++ {
			permits <- struct{}{}
			<-permits
		}
	})
	each.report("governor", size, "ns")
}
