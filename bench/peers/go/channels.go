// SPDX-License-Identifier: MIT

package main

import "sync"

func queuePingPong(size int) {
	there := make(chan int, 1)
	back := make(chan int, 1)
	go func() {
		for value := range there {
			back <- value + 1
		}
		close(back)
	}()
	each := nanosecondsEach(5, size, func() {
		for value := 0; value < size; {
			there <- value
			value = <-back
		}
	})
	close(there)
	<-back
	each.report("queue_ping_pong", size, "ns")
}

// Goroutines need not be on two threads; with GOMAXPROCS=1 they are not.
func channelItems(size int) {
	each := nanosecondsEach(5, size, func() {
		items := make(chan int, 1024)
		go func() {
			for i := 0; i < size; i++ {
				items <- i
			}
			close(items)
		}()
		sum := 0
		for item := range items {
			sum += item
		}
		opaque(sum)
	})
	each.report("channel_items", size, "ns")
}

// Go has no broadcast; a channel for each listener is the usual one.
func broadcast8(size int) {
	const listeners = 8
	each := nanosecondsEach(5, size*listeners, func() {
		var all sync.WaitGroup
		var channels [listeners]chan int
		var sums [listeners]int
		all.Add(listeners)
		for i := range channels {
			channels[i] = make(chan int, 64)
			go func(index int) {
				sum := 0
				for item := range channels[index] {
					sum += item
				}
				sums[index] = sum
				all.Done()
			}(i)
		}
		for i := 0; i < size; i++ {
			for _, channel := range channels {
				channel <- i
			}
		}
		for _, channel := range channels {
			close(channel)
		}
		all.Wait()
		opaque(sums[0])
	})
	each.report("broadcast_8", size, "ns")
}
