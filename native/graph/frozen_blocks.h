#pragma once

#include <vector>

#include "base/thread_team.h"
#include "capture/attention_path.h"
#include "capture/mlp_path.h"
#include "graph/frozen_attention.h"
#include "graph/frozen_mlp.h"
#include "model/weight_file.h"

namespace tapline {

/// A block's MLP in a pass; `parallel`: it reads the block's input.
template <class T>
FrozenMlp<T> frozen_mlp(const MlpPath& path, const WeightFile& weights, const BlockRows& rows, bool parallel,
                        int tokens, ThreadTeam& team) {
  std::vector<T> input(rows.input.size());
  for (size_t k = 0; k < input.size(); ++k)
    input[k] = static_cast<T>(parallel ? rows.input[k] : rows.input[k] + rows.attn[k]);
  return {path, weights, input, rows.ffn, tokens, team};
}

/// A model's blocks in one pass over a text. All paths are known.
struct FrozenBlocks {
  const std::vector<AttentionPath>& attention;
  const std::vector<MlpPath>& mlps;
  const WeightFile& weights;
  const std::vector<BlockRows>& rows;
  const std::vector<float>& last;  // [tokens, hidden]: the last block's output
  int tokens;
  bool parallel;

  size_t layers() const { return rows.size(); }
  int hidden() const { return static_cast<int>(last.size()) / tokens; }
  template <class T>
  FrozenMlp<T> mlp(size_t layer, ThreadTeam& team) const {
    return frozen_mlp<T>(mlps[layer], weights, rows[layer], parallel, tokens, team);
  }
  template <class T>
  FrozenAttention<T> frozen_attention(size_t layer, ThreadTeam& team) const {
    return {attention[layer], weights, rows[layer], tokens, team};
  }
};

}  // namespace tapline
