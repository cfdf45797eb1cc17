#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tapline {

/// 16-bit numbers: IEEE 754 binary16, and the upper half of a float32.
enum class NarrowType { kF16, kBf16 };

/// Rounds finite float32 to 16-bit numbers, to nearest, ties to even. Throws kCompute for the first value
/// beyond the type's range, which would become infinity.
std::vector<uint16_t> narrow(const float* values, size_t count, NarrowType type);

/// Converts 16-bit numbers to float32, exactly.
void widen(const uint16_t* values, size_t count, NarrowType type, float* to);

}  // namespace tapline
