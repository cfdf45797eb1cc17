#pragma once

#include <cstdint>
#include <string>

namespace tapline {

/// llama.cpp's mixtures of weight types.
enum class Quantisation : uint8_t { kQ8_0, kQ6K, kQ5KM, kQ4KM };

/// Writes a copy of a model with quantised weights, as llama-quantize does. Rejects weights of fewer than 16
/// bits: their earlier loss would count as this form's. Throws kModelLoad with llama.cpp's message.
void quantise(const std::string& from, const std::string& to, Quantisation form, int threads);

}  // namespace tapline
