// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"errors"
	"sync"
	"time"
)

const attempts = 3

//go:noinline
func readyOrError(ctx context.Context, value int) (int, error) {
	return value, ctx.Err()
}

// pause sleeps unless the context ends first.
func pause(ctx context.Context, length time.Duration) error {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func withTimeout(ctx context.Context, limit time.Duration, value int) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return readyOrError(ctx, value)
}

func withRetry(ctx context.Context, value int) (int, error) {
	for attempt := 1; ; attempt++ {
		result, err := withTimeout(ctx, time.Hour, value)
		if err == nil || attempt == attempts {
			return result, err
		}
		if err := pause(ctx, 100*time.Millisecond<<(attempt-1)); err != nil {
			return 0, err
		}
	}
}

func timeoutRetry(size int) {
	background := context.Background()
	each := nanosecondsEach(5, size, func() {
		sum := 0
		for i := 0; i < size; i++ {
			value, err := withRetry(background, i)
			if err != nil {
				panic(err)
			}
			sum += value
		}
		opaque(sum)
	})
	each.report("timeout_retry", size, "ns")
}

// breaker is a closed circuit breaker with the rules of weir's: calls and failures of the last 30
// seconds in 32 parts, behind a mutex that is taken before and after the call.
type breaker struct {
	mutex    sync.Mutex
	open     bool
	openedAt time.Time
	parts    [32]struct {
		number          int64
		calls, failures int
	}
	calls, failures int
}

const (
	breakerPart    = 30 * time.Second / 32
	breakerOpenFor = 5 * time.Second
	breakerMinimum = 20
)

var (
	errOpen      = errors.New("circuit open")
	breakerStart = time.Now()
)

func (b *breaker) admit(now time.Time) error {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.open && now.Sub(b.openedAt) < breakerOpenFor {
		return errOpen
	}
	b.open = false
	return nil
}

func (b *breaker) forget(number int64) {
	for i := range b.parts {
		if part := &b.parts[i]; part.number <= number-int64(len(b.parts)) {
			b.calls -= part.calls
			b.failures -= part.failures
			part.calls, part.failures = 0, 0
		}
	}
}

func (b *breaker) ended(now time.Time, err error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	number := int64(now.Sub(breakerStart) / breakerPart)
	part := &b.parts[number%int64(len(b.parts))]
	if part.number != number {
		b.forget(number)
		part.number = number
	}
	part.calls++
	b.calls++
	if err != nil {
		part.failures++
		b.failures++
	}
	if b.calls >= breakerMinimum && b.failures*2 >= b.calls {
		b.open, b.openedAt = true, now
	}
}

func (b *breaker) call(ctx context.Context, value int) (int, error) {
	if err := b.admit(time.Now()); err != nil {
		return 0, err
	}
	result, err := readyOrError(ctx, value)
	b.ended(time.Now(), err)
	return result, err
}

func breakerCall(size int) {
	background := context.Background()
	var circuit breaker
	each := nanosecondsEach(7, size, func() {
		sum := 0
		for i := 0; i < size; i++ {
			value, err := circuit.call(background, i)
			if err != nil {
				panic(err)
			}
			sum += value
		}
		opaque(sum)
	})
	each.report("breaker_call", size, "ns")
}

var errDown = errors.New("down")

// sleepyRetry tells that it is about to sleep and ends with the context.
func sleepyRetry(ctx context.Context, length time.Duration, asleep chan<- struct{}) error {
	err := errDown
	for attempt := 1; err != nil && attempt < 2; attempt++ {
		asleep <- struct{}{}
		if stopped := pause(ctx, length); stopped != nil {
			return stopped
		}
	}
	return err
}

func cancelOne() float64 {
	ctx, cancel := context.WithCancel(context.Background())
	asleep := make(chan struct{})
	joined := make(chan error)
	go func() { joined <- sleepyRetry(ctx, 5*time.Second, asleep) }()
	<-asleep
	settle()
	asked := time.Now()
	cancel()
	<-joined
	return float64(time.Since(asked).Nanoseconds())
}

func cancelRetry(size int) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Add(size)
	asleep := make(chan struct{})
	for i := 0; i < size; i++ {
		go func() {
			defer all.Done()
			sleepyRetry(ctx, time.Hour, asleep)
		}()
	}
	for i := 0; i < size; i++ {
		<-asleep
	}
	const repetitions = 1000
	var each []float64
	for i := 0; i < 2*repetitions; i++ {
		took := cancelOne()
		if i >= repetitions { // the first half is a warm-up
			each = append(each, took)
		}
	}
	report("cancel_retry", size, median(each), "ns")
	cancel()
	all.Wait()
}
