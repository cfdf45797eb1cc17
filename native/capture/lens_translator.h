#pragma once

#include <string>
#include <vector>

#include "base/counted.h"
#include "ggml-backend.h"
#include "ggml-cpp.h"
#include "ggml.h"

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

/// Whether two translators are the same one, and an order among them.
bool operator<(const Translator& a, const Translator& b);

/// A translator's numbers in a backend's memory, as the file has them.
class LoadedTranslator : public Counted<LoadedTranslator> {
 public:
  /// Throws kInvalidArgument if the file does not contain the numbers, kOutOfMemory.
  LoadedTranslator(ggml_backend_t backend, const Translator& translator, int n_embd);

  /// Translates rows [rows, n_embd] in place, in float32. With the processor's own products, the numbers of a
  /// row do not depend on the other rows. Throws kOutOfMemory, kCompute.
  void apply(std::vector<float>& rows);

 private:
  ggml_backend_t backend_;
  int n_embd_;
  bool residual_;
  ggml_context_ptr weights_;
  ggml_backend_buffer_ptr buffer_;
  ggml_tensor* matrix_ = nullptr;
  ggml_tensor* bias_ = nullptr;  // null: none
  ggml_gallocr_ptr scratch_;     // widened parts of the matrix, and rows
};

}  // namespace tapline
