// SPDX-License-Identifier: MIT
module weir/bench/peers

go 1.19
