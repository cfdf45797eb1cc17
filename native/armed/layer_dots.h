#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <tuple>
#include <vector>

#include "armed/table.h"

namespace tapline {

/// A vector whose products with one layer's activations are read.
struct Dot {
  int layer = 0;
  std::tuple<uint64_t, int, int> key;  // identifies the vector during the process's life
  std::function<float(size_t)> value;
};

/// The products of a layer's activations with vectors, as sums in F32: matrix products of some devices round
/// more.
class LayerDots {
 public:
  LayerDots(ggml_backend_t backend, int n_embd) : backend_(backend), n_embd_(n_embd) {}

  /// The number of vectors that the graph computes with.
  size_t size() const { return size_; }
  /// The number of nodes that vectors add to a graph, at most.
  static int nodes(size_t vectors) { return 6 * static_cast<int>(vectors); }
  /// The number of vectors for at least `count` of them, without fewer than before.
  size_t grown(size_t count) const;
  /// Allocates. Throws kOutOfMemory.
  void arm(size_t size);
  void disarm() { size_ = 0; }

  void begin_batch() { used_.assign(used_.size(), false); }
  /// The place of a vector, from now on used by this batch; none if it has none yet.
  std::optional<size_t> find(const Dot& dot);
  /// A new place, after arm() for enough vectors and find() for all others of the batch.
  size_t add(const Dot& dot);

  /// The products with vector `at`, [1, n].
  ggml_tensor* extend(ggml_context* ctx, ggml_tensor* output, size_t at) const;

 private:
  ggml_backend_t backend_;
  int n_embd_;
  size_t size_ = 0;
  std::vector<std::optional<std::tuple<uint64_t, int, int>>> keys_;
  std::vector<bool> used_;
  Table vectors_;
};

}  // namespace tapline
