#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tapline {

/// Numbers of 16 bits: IEEE 754 binary16, and the upper half of a float32.
enum class NarrowType { kF16, kBf16 };

/// Finite float32 as numbers of 16 bits, rounded to nearest, ties to even. Throws kCompute with the first
/// value that is beyond the type's range: it would come back as infinity.
std::vector<uint16_t> narrow(const float* values, size_t count, NarrowType type);

/// The numbers of 16 bits as float32, exactly.
void widen(const uint16_t* values, size_t count, NarrowType type, float* to);

}  // namespace tapline
