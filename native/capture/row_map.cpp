#include "capture/row_map.h"

#include <algorithm>
#include <map>

namespace tapline {

namespace {

void add_row(MicroBatch& micro, const llama_batch& batch, int index) {
  micro.rows.push_back(index);
  micro.tokens.push_back(batch.token[index]);
  micro.positions.push_back(batch.pos[index]);
  if (batch.logits[index] != 0) micro.outputs.push_back(index);
}

std::vector<MicroBatch> split_in_order(const llama_batch& batch, uint32_t n_ubatch) {
  std::vector<MicroBatch> micros;
  for (int i = 0; i < batch.n_tokens; ++i) {
    if (i % static_cast<int>(n_ubatch) == 0) micros.emplace_back();
    add_row(micros.back(), batch, i);
  }
  return micros;
}

std::vector<MicroBatch> split_equal(const llama_batch& batch, bool ascending, uint32_t n_ubatch) {
  std::map<llama_seq_id, std::vector<int>> left;  // unused batch indices of each sequence, last one first
  for (int i = batch.n_tokens - 1; i >= 0; --i) left[batch.seq_id[i][0]].push_back(i);
  std::vector<MicroBatch> micros;
  while (true) {
    // Sequences take part in the order in which their first unused token stands in the batch.
    std::vector<std::pair<int, llama_seq_id>> heads;
    for (const auto& [id, indices] : left) {
      if (!indices.empty()) heads.emplace_back(indices.back(), id);
    }
    if (heads.empty()) return micros;
    std::sort(heads.begin(), heads.end());
    std::vector<llama_seq_id> chosen;
    for (const auto& [index, id] : heads) {
      if (chosen.size() > n_ubatch) break;
      if (!ascending || chosen.empty() || id == chosen.back() + 1) chosen.push_back(id);
    }
    size_t length = std::max<size_t>(1, n_ubatch / chosen.size());
    for (const llama_seq_id id : chosen) length = std::min(length, left[id].size());
    micros.emplace_back();
    for (const llama_seq_id id : chosen) {
      for (size_t k = 0; k < length; ++k) {
        add_row(micros.back(), batch, left[id].back());
        left[id].pop_back();
      }
    }
  }
}

}  // namespace

std::vector<MicroBatch> plan_micro_batches(const llama_batch& batch, SplitKind kind, uint32_t n_ubatch) {
  if (kind == SplitKind::kInOrder) return split_in_order(batch, n_ubatch);
  return split_equal(batch, kind == SplitKind::kEqualAscending, n_ubatch);
}

}  // namespace tapline
