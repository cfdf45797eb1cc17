#pragma once

#include <vector>

#include "base/thread_team.h"
#include "capture/attention_path.h"
#include "capture/mlp_path.h"
#include "graph/frozen_attention.h"
#include "graph/frozen_mlp.h"
#include "model/weight_file.h"

namespace tapline {

/// A model's blocks in one pass over a text. All paths that are taken are known.
struct FrozenBlocks {
  const std::vector<AttentionPath>& attention;
  const std::vector<MlpPath>& mlps;
  const WeightFile& weights;
  const std::vector<BlockRows>& rows;
  const std::vector<float>& last;  // [tokens, hidden]: the last block's output
  int tokens;
  bool parallel;  // MLPs read the blocks' inputs

  size_t layers() const { return rows.size(); }
  int hidden() const { return static_cast<int>(last.size()) / tokens; }
  /// The stream where a block's MLP reads it, [tokens, hidden].
  template <class T>
  std::vector<T> mlp_input(size_t layer) const {
    const BlockRows& block = rows[layer];
    std::vector<T> input(block.input.size());
    for (size_t k = 0; k < input.size(); ++k)
      input[k] = static_cast<T>(parallel ? block.input[k] : block.input[k] + block.attn[k]);
    return input;
  }
  template <class T>
  FrozenMlp<T> frozen_mlp(size_t layer, ThreadTeam& team) const {
    return {mlps[layer], weights, mlp_input<T>(layer), rows[layer].ffn, tokens, team};
  }
  template <class T>
  FrozenAttention<T> frozen_attention(size_t layer, ThreadTeam& team) const {
    return {attention[layer], weights, rows[layer], tokens, team};
  }
};

}  // namespace tapline
