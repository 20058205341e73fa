// SPDX-License-Identifier: MIT

// The same smallest program as core/answer.cpp; only the size of its stripped binary matters.
package main

import (
	"os"
	"time"
)

func answer() int {
	time.Sleep(10 * time.Millisecond)
	return 42
}

func main() {
	if answer() != 42 {
		os.Exit(1)
	}
}
