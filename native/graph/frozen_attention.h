#pragma once

#include <functional>
#include <vector>

#include "base/thread_team.h"
#include "capture/attention_path.h"
#include "graph/frozen_path.h"
#include "model/weight_file.h"

namespace tapline {

/// The rows of one block in a pass, one per token.
struct BlockRows {
  std::vector<float> input;    // [tokens, hidden]
  std::vector<float> weights;  // of attention, [heads, tokens, tokens]: of each token over all tokens
  std::vector<float> heads;    // [tokens, heads * head width], before the output projection
  std::vector<float> attn;     // [tokens, hidden]: attn_out
  std::vector<float> ffn;      // [tokens, hidden]: ffn_out
  std::vector<float> ffn_in;   // [tokens, hidden], where it was read
};

/// A block's attention with its weights and the scales of its norms fixed at one pass, which makes it linear.
/// T is float or double.
template <class T>
class FrozenAttention {
 public:
  /// `path` is known; `rows` outlive this object.
  FrozenAttention(const AttentionPath& path, const WeightFile& weights, const BlockRows& rows, int tokens,
                  ThreadTeam& team);

  /// How far the pass is from the linear path, relative L2: of the heads' outputs from the block's input, and
  /// of attn_out from the heads' outputs, whichever is farther. It is the rounding of the pass's products and
  /// of its cache, unless the path is wrong.
  double apart() const { return apart_; }

  /// What linear functions of attn_out consist of.
  struct Parts {
    double* heads;      // [count, heads, tokens]: by head and by the token that reads; may be null
    double* replaced;   // the same of other outputs instead of these; null without
    double* rounding;   // [count, tokens]: what the pass computed and the linear path does not
    double* constants;  // [count]: biases, added
  };
  /// Gets the functions of the heads' outputs, [count, tokens, heads * head width], and may change them.
  using AtHeads = std::function<void(std::vector<T>& read)>;
  /// Adds to each of `functions`, [count, tokens, hidden], of the block's output or its middle, the part that
  /// comes through attention, so that they become functions of the block's input.
  /// `other`, [tokens, heads * head width], are heads' outputs for `replaced`; may be null.
  void pull_back(std::vector<T>& functions, int count, const Parts& parts, const float* other,
                 ThreadTeam& team, const AtHeads& at_heads = {}) const;

  /// Adds to each of `changes`, [count, tokens, hidden], of the block's input what attention makes of it.
  void push(std::vector<T>& changes, int count, const WeightFile& weights, ThreadTeam& team) const;

 private:
  void mix_back(const T* read, T* values, int value_width) const;

  int tokens_;
  int heads_;
  int group_;  // heads that share values
  int width_;  // of a head
  const BlockRows& rows_;
  FrozenPath<T> values_;
  FrozenPath<T> output_;
  std::vector<T> head_rounding_;  // [tokens, heads * width]
  std::vector<T> rounding_;       // [tokens, hidden]
  double apart_ = 0;
};

}  // namespace tapline
