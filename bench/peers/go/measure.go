// SPDX-License-Identifier: MIT

package main

import (
	"bufio"
	"fmt"
	"os"
	"sort"
	"strings"
	"syscall"
	"time"
)

// Sinks that the compiler cannot see through, so that measured work is not optimised away.
var (
	sink   int
	opaque = func(value int) { sink += value }
)

func report(row string, size int, value float64, unit string) {
	fmt.Printf("%s\t%d\t%.3f\t%s\n", row, size, value, unit)
}

func median(values []float64) float64 {
	sort.Float64s(values)
	return values[len(values)/2]
}

// cost is what an item takes by the clock, and of the processors of all threads.
type cost struct{ wall, cpu float64 }

func (c cost) report(row string, size int, unit string) {
	fmt.Printf("%s\t%d\t%.3f\t%s\t%.3f\n", row, size, c.wall, unit, c.cpu)
}

func processorNanoseconds() float64 {
	var used syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return float64(used.Utime.Nano() + used.Stime.Nano())
}

func measureOnce(divisor float64, work func()) cost {
	before, start := processorNanoseconds(), time.Now()
	work()
	wall := float64(time.Since(start).Nanoseconds())
	return cost{wall / divisor, (processorNanoseconds() - before) / divisor}
}

func medianCost(each []cost) cost {
	var wall, cpu []float64
	for _, c := range each {
		wall, cpu = append(wall, c.wall), append(cpu, c.cpu)
	}
	return cost{median(wall), median(cpu)}
}

// nanosecondsEach is the median cost per item over some rounds, after one warm-up round.
func nanosecondsEach(rounds, size int, work func()) cost {
	work()
	var each []cost
	for round := 0; round < rounds; round++ {
		each = append(each, measureOnce(float64(size), work))
	}
	return medianCost(each)
}

// farAway scatters deadlines from one to two hours ahead, with the same hash as the C++ programs.
func farAway(index int) time.Duration {
	scattered := (uint64(index) * 0x9E3779B97F4A7C15 >> 33) % 1000000
	return time.Hour + time.Duration(scattered)*3600*time.Microsecond
}

// useSmallPages is PR_SET_THP_DISABLE: a huge page would count 2 MiB for its first byte.
func useSmallPages() { syscall.RawSyscall(syscall.SYS_PRCTL, 41, 1, 0) }

// bytesInUse is the private memory this process has touched, exact by a walk of its page tables.
func bytesInUse() int {
	file, err := os.Open("/proc/self/smaps_rollup")
	if err != nil {
		fmt.Fprintln(os.Stderr, "cannot read /proc/self/smaps_rollup: no bytes can be reported")
		os.Exit(3)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "Anonymous:") {
			var kibibytes int
			fmt.Sscanf(lines.Text(), "Anonymous: %d kB", &kibibytes)
			return kibibytes * 1024
		}
	}
	return 0
}
