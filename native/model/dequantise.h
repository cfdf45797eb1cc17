#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace tapline {

/// One weight in a GGUF file.
struct Weight {
  std::string path;
  double offset = 0;  // in bytes
  int type = 0;       // ggml's number
  int64_t row = 0;    // numbers of a row
  int64_t rows = 0;
};

/// Calls take(values, first, count) for `count` rows from row `first` on, a few megabytes at a time, as
/// 32-bit floats, converted by ggml's own routines. Throws kInvalidArgument for types that ggml cannot
/// convert, and if the file is too short.
void each_dequantised(const Weight& weight,
                      const std::function<void(const float* values, int64_t first, int64_t count)>& take);

/// Appends a weight's numbers to a file, as 32-bit floats. Throws as each_dequantised(), and if the file
/// cannot be written.
void dequantise(const Weight& weight, const std::string& to);

}  // namespace tapline
