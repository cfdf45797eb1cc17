#pragma once

#include <functional>
#include <vector>

#include "base/cancel.h"
#include "base/thread_team.h"
#include "graph/frozen_blocks.h"
#include "graph/frozen_transcoder.h"
#include "graph/graph_nodes.h"

namespace tapline {

/// A pass whose MLP outputs are replaced by transcoders.
template <class T>
struct ReplacedBlocks {
  const FrozenBlocks& blocks;
  const std::vector<FrozenTranscoder<T>>& transcoders;  // by layer

  size_t active() const;
  /// The index of a layer's first active feature among all.
  std::vector<size_t> offsets() const;
};

/// The parts of each target's and each node's value that come directly from embeddings, active features and
/// what is left. Nodes are active features, by their index among all.
struct TranscoderEdges {
  std::vector<size_t> nodes;  // ascending
  /// [targets + nodes, columns]. The columns: embeddings by token, nodes, then by layer and token the active
  /// features that are not nodes, the errors, and what attention computed and the linear paths do not.
  std::vector<float> parts;
  size_t columns = 0;
  // By row. The value is the sum of its parts and its constant.
  std::vector<double> values;
  std::vector<double> constants;
  /// The sum's distance from the value, over the L2 norm of the parts and the value.
  std::vector<double> residuals;
  std::vector<double> apart;  // by layer: see FrozenAttention::apart()
};

/// Bytes of the numbers of type T that transcoder_edges() holds, and of the edges.
size_t transcoder_edge_bytes(size_t rows, size_t active, size_t layers, size_t tokens);
/// Rows of the stream that are taken through the blocks together.
size_t transcoder_rows_together(size_t tokens);

/// The edges of the targets and of `most` active features, chosen by their influence on the targets as far as
/// it is known, which is computed again as rows are added (Ameisen et al. 2025). `progress` counts rows.
template <class T>
TranscoderEdges transcoder_edges(const ReplacedBlocks<T>& replaced, const std::vector<GraphTarget>& targets,
                                 size_t most, ThreadTeam& team, const CancelToken& cancel,
                                 const std::function<void(size_t, size_t)>& progress);

/// What the targets and nodes lose when each of some nodes is removed, with attention weights, norms and all
/// other MLP outputs fixed: the change is taken upwards through the blocks. `removed` are indices of nodes;
/// the result is [removed, targets + nodes].
template <class T>
std::vector<double> frozen_removals(const ReplacedBlocks<T>& replaced,
                                    const std::vector<GraphTarget>& targets, const std::vector<size_t>& nodes,
                                    const std::vector<size_t>& removed, ThreadTeam& team,
                                    const CancelToken& cancel);

}  // namespace tapline
