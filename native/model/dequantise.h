#pragma once

#include <cstdint>
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

/// Appends a weight's numbers to a file, as 32-bit floats, converted by ggml's own routines. Throws
/// kInvalidArgument for types that ggml cannot convert, and if the file is too short or cannot be written.
void dequantise(const Weight& weight, const std::string& to);

}  // namespace tapline
