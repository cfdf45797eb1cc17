#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "llama-graph.h"

namespace tapline {

/// An input of armed graphs: for each row of a micro-batch its number in tables. llama.cpp passes the
/// micro-batch itself, so the order of its rows need not be predicted.
class RowInput final : public llm_graph_input_i {
 public:
  /// One list of numbers.
  struct Part {
    size_t device = 0;
    int layer = -1;  // of edits; -1: rows of results
    size_t stage = 0;
    bool outputs_only = false;  // numbers of the rows with outputs
    int64_t first = 0;          // in the device's tensor
    int64_t count = 0;
  };
  using Upload = std::function<void(const llama_ubatch&, const std::vector<Part>&)>;

  /// `shape` identifies the graph, and `current` returns the shape that a graph would have now.
  RowInput(uint64_t shape, std::function<uint64_t()> current, Upload upload)
      : shape_(shape), current_(std::move(current)), upload_(std::move(upload)) {}

  std::vector<Part> parts;

  /// Lists begin at multiples of this, as devices require it of tensors.
  static int64_t aligned(int64_t count) { return (count + 63) / 64 * 64; }

  void set_input(const llama_ubatch* ubatch) override { upload_(*ubatch, parts); }
  /// llama.cpp compares the numbers of tokens and outputs itself.
  bool can_reuse(const llm_graph_params&) override { return shape_ == current_(); }

 private:
  uint64_t shape_;
  std::function<uint64_t()> current_;
  Upload upload_;
};

}  // namespace tapline
