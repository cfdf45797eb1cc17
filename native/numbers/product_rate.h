#pragma once

namespace tapline {

/// Floating-point operations per second (a multiply and an add count as two) of single-precision matrix
/// products in the first-level cache: the maximum of this processor with these kernels. For the benchmark.
double product_rate(int threads, double seconds);

}  // namespace tapline
