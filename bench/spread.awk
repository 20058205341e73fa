# SPDX-License-Identifier: MIT
#
# When a number is good enough to be shown. Of n runs of a program the n/4 slowest, rounded down,
# are set aside: whatever else the machine does makes a run longer and never shorter. The result has
# settled if the largest value that is left is at most `settled_spread` times the smallest; it is
# the median of those that are left. A program that is fast in some runs and slow in others, each
# often, does not settle.
BEGIN { settled_spread = 1.3 }

function add_run(key, value) { run_of[key, ++run_count[key]] = value + 0 }

# Sorts the runs of `key` into `sorted` and returns how many are left.
function kept_runs(key, sorted,    n, i, j, value) {
    n = run_count[key]
    for (i = 1; i <= n; ++i) {
        value = run_of[key, i]
        for (j = i - 1; j >= 1 && sorted[j] > value; --j) sorted[j + 1] = sorted[j]
        sorted[j + 1] = value
    }
    return n - int(n / 4)
}

# Of what is left, the largest by the smallest; 1 if there is nothing to compare.
function spread_of(key,    sorted, n) {
    if (!(key in run_count)) return 1
    n = kept_runs(key, sorted)
    if (sorted[n] <= 0) return 1
    return sorted[1] > 0 ? sorted[n] / sorted[1] : sorted[n] + 1
}

function settled(key) { return spread_of(key) <= settled_spread }

function median_of(key,    sorted, n) {
    n = kept_runs(key, sorted)
    return sorted[int((n + 1) / 2)]
}
