#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "capture/graph_view.h"
#include "ggml.h"
#include "model/model.h"

namespace tapline {

/// One step on each token's row that is linear once the scale of its norm is fixed.
struct PathStep {
  enum class Kind : uint8_t { kRmsNorm, kLayerNorm, kMultiply, kAdd, kMatrix, kScale, kTake };
  Kind kind;
  int in = 0;                           // numbers of a row before the step
  int out = 0;                          // and after it
  int group = 0;                        // numbers that a norm scales together; a row may have several groups
  float a = 0;                          // epsilon of a norm, factor of a scale
  float b = 0;                          // offset of a scale
  const ggml_tensor* weight = nullptr;  // of the model: of kMultiply and kAdd, repeated along the row
  std::vector<int32_t> take;            // of kTake, the place of each number in the row before the step
};

/// Reads such steps from a compute graph of `n_tokens` tokens.
class StepReader {
 public:
  StepReader(const GraphView& graph, const Model& model, int64_t n_tokens)
      : graph_(graph), model_(model), n_tokens_(n_tokens) {}

  /// The steps from node `start` to node `end`. Returns why they are unknown, as the end of a sentence; empty
  /// if they are known.
  std::string read(int start, int end, std::vector<PathStep>& steps) const;
  /// The steps to node `end` from the last node that is no such step, which is returned.
  int read_back(int end, std::vector<PathStep>& steps) const;
  /// Numbers per token.
  int width_of(const ggml_tensor* t) const { return static_cast<int>(ggml_nelements(t) / n_tokens_); }

 private:
  /// One step to node `at`, from the node that is returned; -1 and the reason if it is none.
  int before(int at, std::vector<PathStep>& steps, std::string& why) const;
  const ggml_tensor* own(const ggml_tensor* leaf) const;
  bool understand(const ggml_tensor* t, const ggml_tensor* from, const ggml_tensor* weight, int operand,
                  PathStep& step) const;

  const GraphView& graph_;
  const Model& model_;
  int64_t n_tokens_;
};

/// The path of every block; an unknown one says so in a sentence: that of `read`, with `subject` ("The
/// architecture 'x' "), `what` and the block before it.
template <class Read>
auto paths_of_blocks(const Model& model, const std::string& subject, const std::string& what, Read read) {
  std::vector<decltype(read(0))> paths;
  for (int layer = 0; layer < model.info().n_layer; ++layer) {
    auto path = read(layer);
    if (!path.why.empty())
      path.why =
          subject + "has no proven " + what + " in block " + std::to_string(layer) + ": " + path.why + ".";
    paths.push_back(std::move(path));
  }
  return paths;
}

}  // namespace tapline
