#pragma once

#include <cstdint>
#include <string>

namespace tapline {

/// Mixtures of types that llama.cpp keeps weights in.
enum class Quantisation : uint8_t { kQ8_0, kQ6K, kQ5KM, kQ4KM };

/// Writes a model's file anew with its weights in fewer bits, as llama-quantize does. Weights that are in
/// fewer than 16 bits already are refused: what they lost before would count as this form's loss. Throws
/// kModelLoad with llama.cpp's own words.
void quantise(const std::string& from, const std::string& to, Quantisation form, int threads);

}  // namespace tapline
