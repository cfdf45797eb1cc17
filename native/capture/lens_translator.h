#pragma once

#include <string>
#include <vector>

#include "ggml-backend.h"

namespace tapline {

/// The map of a translating lens from a row h of a block output to the input of the model's final norm and
/// head: matrix . h + bias, plus h with `residual`. The Jacobian lens is the matrix alone; the tuned lens has
/// all three (Belrose et al., 2303.08112). The numbers stay in their file.
struct Translator {
  std::string path;
  bool half = false;  // the matrix is IEEE binary16, else float32; a bias is float32
  double matrix = 0;  // its first byte in the file: [n_embd, n_embd], one row per output
  double bias = 0;    // [n_embd]; 0: none
  bool residual = false;
};

/// Translates rows [rows, n_embd] in place, on a backend, in float32. Throws kInvalidArgument if the file
/// does not contain the numbers, kOutOfMemory, kCompute.
void translate(ggml_backend_t backend, const Translator& translator, std::vector<float>& rows, int n_embd);

}  // namespace tapline
