#pragma once

struct ggml_tensor;
struct llama_adapter_cvec;
struct llm_graph_context;

namespace tapline {

/// Extends the compute graph of one llama_context at the end of each block.
class BlockEnd {
 public:
  virtual ~BlockEnd() = default;
  /// Called while a graph is built. Returns the tensor that the graph uses as the block's output from here
  /// on.
  virtual ggml_tensor* extend(const llm_graph_context& graph, ggml_tensor* output, int layer) = 0;
};

/// Sets or, with null, removes the extension of the context that owns `control_vector`: each has its own.
void set_block_end(const llama_adapter_cvec* control_vector, BlockEnd* end);

}  // namespace tapline
