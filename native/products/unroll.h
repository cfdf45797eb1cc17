#pragma once

/// Before a loop over an array of sums, which only registers hold if the loop is unrolled.
#if defined(__clang__)
#define TAPLINE_UNROLL _Pragma("unroll")
#elif defined(__GNUC__)
#define TAPLINE_UNROLL _Pragma("GCC unroll 16")
#else
#define TAPLINE_UNROLL
#endif
