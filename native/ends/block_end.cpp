// llm_graph_context::build_cvec, which llama.cpp's models call at the end of each block. CMakeLists.txt
// compiles this into llama.cpp and gives its own definition another name. Graphs of contexts without an
// extension do not change.

#include "block_end.h"

#include <mutex>
#include <unordered_map>

#include "llama-adapter.h"
#include "llama-graph.h"

namespace tapline {

namespace {

std::mutex mutex;
std::unordered_map<const llama_adapter_cvec*, BlockEnd*> ends;

BlockEnd* end_of(const llama_adapter_cvec* control_vector) {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = ends.find(control_vector);
  return found == ends.end() ? nullptr : found->second;
}

}  // namespace

void set_block_end(const llama_adapter_cvec* control_vector, BlockEnd* end) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (end == nullptr) {
    ends.erase(control_vector);
  } else {
    ends[control_vector] = end;
  }
}

}  // namespace tapline

ggml_tensor* llm_graph_context::build_cvec(ggml_tensor* cur, int il) const {
  ggml_tensor* const output = cvec->apply_to(ctx0, cur, il);
  tapline::BlockEnd* const end = tapline::end_of(cvec);
  return end == nullptr ? output : end->extend(*this, output, il);
}
