#include "capture/head_search.h"

namespace tapline {

Heads find_heads(const GraphView& graph, int from, const TracedNode& added) {
  const GraphPaths paths(graph, from, added);
  Heads heads;
  int found = -1;
  for (int i = paths.first(); i <= paths.last(); ++i) {
    if (!paths.reached(i)) continue;
    const ggml_tensor* t = graph.node(i);
    if (t->op != GGML_OP_FLASH_ATTN_EXT && !(t->op == GGML_OP_SOFT_MAX && t->src[1] != nullptr)) continue;
    if (found >= 0) {
      heads.why = "attends more than once";
      return heads;
    }
    found = i;
  }
  if (found < 0) {
    heads.why = "mixes tokens without attention weights";
    return heads;
  }
  const ggml_tensor* t = graph.node(found);
  const bool fused = t->op == GGML_OP_FLASH_ATTN_EXT;
  heads.count = static_cast<int>(fused ? t->ne[1] : t->ne[2]);
  if (!fused && t->ne[3] == 1) heads.weights = paths.trace(found);
  // Flash attention concatenates the heads of a token; otherwise that is a separate step.
  const int side_by_side =
      fused ? paths.reader(found, GGML_OP_RESHAPE, 0)
            : paths.reader(paths.reader(paths.reader(found, GGML_OP_MUL_MAT, 1), GGML_OP_PERMUTE, 0),
                           GGML_OP_CONT, 0);
  if (side_by_side >= 0 && graph.node(side_by_side)->ne[0] % heads.count == 0)
    heads.out = paths.trace(side_by_side);
  return heads;
}

}  // namespace tapline
