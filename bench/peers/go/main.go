// SPDX-License-Identifier: MIT

// The Go peers of weir's benchmarks: `go_peers ROW SIZE` prints row, size, value, unit and, where it
// is measured, processor time, and
// `go_peers list` the rows that there are.
package main

import (
	"fmt"
	"os"
	"strconv"
)

var programs = map[string]func(size int){
	"await_ready":     awaitReady,
	"spawn_join":      spawnJoin,
	"child_bytes":     childBytes,
	"timer_churn":     timerChurn,
	"timer_bulk":      timerBulk,
	"sleeper_bytes":   sleeperBytes,
	"cancel_joined":   cancelJoined,
	"timeout_ready":   timeoutReady,
	"governor":        governor,
	"pool_jobs":       poolJobs,
	"on_trip":         onTrip,
	"blocking_trip":   blockingTrip,
	"busy_jobs":       busyJobs,
	"all_recursion":   allRecursion,
	"timeout_retry":   timeoutRetry,
	"breaker_call":    breakerCall,
	"cancel_retry":    cancelRetry,
	"queue_ping_pong": queuePingPong,
	"channel_items":   channelItems,
	"broadcast_8":     broadcast8,
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == "list" {
		for name := range programs {
			fmt.Println(name)
		}
		return
	}
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: go_peers ROW SIZE")
		os.Exit(2)
	}
	program, known := programs[os.Args[1]]
	size, err := strconv.Atoi(os.Args[2])
	if !known || err != nil || size <= 0 {
		fmt.Fprintf(os.Stderr, "no row '%s' of size '%s'\n", os.Args[1], os.Args[2])
		os.Exit(2)
	}
	program(size)
}
