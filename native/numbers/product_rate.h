#pragma once

namespace tapline {

/// Floating-point operations a second (a multiply and an add count two) of single-precision matrix products
/// that stay in the first-level cache: the best that this processor does with these kernels. For the
/// benchmark.
double product_rate(int threads, double seconds);

}  // namespace tapline
