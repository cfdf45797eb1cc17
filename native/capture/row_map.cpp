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

/// The number of tokens of each sequence in a micro-batch of equal lengths. Sequences whose last `keep_tail`
/// tokens would be divided wait for a later one; if that is the first of them, it is alone, complete or up to
/// its tail.
std::vector<size_t> equal_lengths(const std::vector<size_t>& left, size_t n_ubatch, size_t keep_tail) {
  const size_t shortest = *std::min_element(left.begin(), left.end());
  const size_t length = std::min(shortest, std::max<size_t>(1, n_ubatch / left.size()));
  const auto divides = [&](size_t of) { return of > length && of - length < keep_tail; };
  const auto first = std::find_if(left.begin(), left.end(), divides);
  if (first != left.begin()) return std::vector<size_t>(static_cast<size_t>(first - left.begin()), length);
  return {left.front() <= n_ubatch ? left.front() : left.front() - keep_tail};
}

/// The sequences of the next micro-batch of equal lengths, in the order of their first unused token or, with
/// ascending ids, of the first one after a token of the previous id.
std::vector<llama_seq_id> next_sequences(const llama_batch& batch, const std::vector<bool>& used,
                                         bool ascending, uint32_t n_ubatch) {
  std::vector<llama_seq_id> taken;
  for (int i = 0; i < batch.n_tokens && taken.size() <= n_ubatch; ++i) {
    if (used[static_cast<size_t>(i)]) continue;
    const llama_seq_id id = batch.seq_id[i][0];
    const bool takes = ascending ? taken.empty() || id == taken.back() + 1
                                 : std::find(taken.begin(), taken.end(), id) == taken.end();
    if (takes) taken.push_back(id);
  }
  return taken;
}

std::vector<MicroBatch> split_equal(const llama_batch& batch, bool ascending, uint32_t n_ubatch,
                                    uint32_t keep_tail) {
  std::map<llama_seq_id, std::vector<int>> left;  // unused batch indices of each sequence, last one first
  for (int i = batch.n_tokens - 1; i >= 0; --i) left[batch.seq_id[i][0]].push_back(i);
  std::vector<bool> used(static_cast<size_t>(batch.n_tokens));
  std::vector<MicroBatch> micros;
  while (true) {
    const std::vector<llama_seq_id> taken = next_sequences(batch, used, ascending, n_ubatch);
    if (taken.empty()) return micros;
    std::vector<size_t> counts;
    for (const llama_seq_id id : taken) counts.push_back(left[id].size());
    const std::vector<size_t> lengths = equal_lengths(counts, n_ubatch, keep_tail);
    micros.emplace_back();
    for (size_t place = 0; place < lengths.size(); ++place) {
      std::vector<int>& indices = left[taken[place]];
      for (size_t k = 0; k < lengths[place]; ++k) {
        add_row(micros.back(), batch, indices.back());
        used[static_cast<size_t>(indices.back())] = true;
        indices.pop_back();
      }
    }
  }
}

}  // namespace

std::vector<MicroBatch> plan_micro_batches(const llama_batch& batch, SplitKind kind, uint32_t n_ubatch,
                                           uint32_t n_rs_seq) {
  if (kind == SplitKind::kInOrder) return split_in_order(batch, n_ubatch);
  return split_equal(batch, kind == SplitKind::kEqualAscending, n_ubatch, n_rs_seq > 0 ? n_rs_seq + 1 : 0);
}

}  // namespace tapline
