#include "engine/plain_twin.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "llama-context.h"

namespace tapline {

namespace {

/// The settings of the server's context, which may have replaced some of its parameters.
llama_context_params settings_of(const llama_context* served, const common_params& params) {
  llama_context_params settings = common_context_params_to_llama(params);
  const llama_cparams& chosen = served->get_cparams();
  settings.n_ctx = chosen.n_ctx;
  settings.n_batch = chosen.n_batch;
  settings.n_ubatch = chosen.n_ubatch;
  settings.n_seq_max = chosen.n_seq_max;
  settings.n_rs_seq = chosen.n_rs_seq;
  settings.n_outputs_max = chosen.n_outputs_max;
  settings.n_outputs_max_per_seq = chosen.n_outputs_max_per_seq;
  settings.n_threads = chosen.n_threads;
  settings.n_threads_batch = chosen.n_threads_batch;
  return settings;
}

}  // namespace

PlainTwin::PlainTwin(ServerSlots& slots, const LiveRegistry& registry, const common_params& params)
    : slots_(slots), registry_(registry), sequences_(static_cast<size_t>(slots.count())) {
  llama_context* served = slots_.context();
  auto* model = const_cast<llama_model*>(llama_get_model(served));
  context_.reset(llama_init_from_model(model, settings_of(served, params)));
  if (!context_) throw Error(ErrorCode::kOutOfMemory, "There is not enough memory for a second context.");
  slots_.set_observer([this](llama_context* ctx, const llama_batch& batch) { mirror(ctx, batch); });
}

PlainTwin::~PlainTwin() {
  slots_.set_observer(nullptr);
}

TwinReport PlainTwin::report() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return report_;
}

/// Decodes a batch that the server has decoded.
void PlainTwin::mirror(llama_context* served, const llama_batch& batch) {
  if (batch.token == nullptr) return;  // images: their requests have no edits
  struct Start {
    int slot;
    ServerSlots::Task task;
    size_t first;  // token of its part of the batch
  };
  std::vector<Start> starts;
  std::vector<bool> seen(sequences_.size());
  for (int i = 0; i < batch.n_tokens; ++i) {
    const int slot = batch.seq_id[i][0];
    if (seen[static_cast<size_t>(slot)]) continue;
    seen[static_cast<size_t>(slot)] = true;
    starts.push_back({slot, slots_.task(slot), static_cast<size_t>(batch.pos[i])});
  }
  // Copies of other slots must be made before those continue.
  std::stable_partition(starts.begin(), starts.end(),
                        [](const Start& start) { return start.task.parent >= 0; });
  for (const Start& start : starts) {
    Sequence& sequence = sequences_[static_cast<size_t>(start.slot)];
    const bool reached = sync_cache(start.slot, start.task, start.first);
    sequence.lost = !reached || (sequence.lost && sequence.task == start.task.id);
    sequence.task = start.task.id;
    if (reached) continue;
    llama_memory_seq_rm(llama_get_memory(context_.get()), start.slot, -1, -1);
    sequence.tokens.assign(start.first, LLAMA_TOKEN_NULL);
    const std::lock_guard<std::mutex> lock(mutex_);
    ++report_.lost;
  }
  llama_set_embeddings(context_.get(), served->get_cparams().embeddings);
  if (llama_decode(context_.get(), batch) != 0)
    throw Error(ErrorCode::kCompute, "The twin could not decode a batch that the server decoded.");
  for (int i = 0; i < batch.n_tokens; ++i)
    sequences_[static_cast<size_t>(batch.seq_id[i][0])].tokens.push_back(batch.token[i]);
  compare(served, batch);
}

/// Makes the twin's cache of a slot match the server's: the tokens before `first`.
bool PlainTwin::sync_cache(int slot, const ServerSlots::Task& task, size_t first) {
  Sequence& sequence = sequences_[static_cast<size_t>(slot)];
  llama_memory_t memory = llama_get_memory(context_.get());
  const bool begins = sequence.task != task.id;
  if (begins && task.parent >= 0) {
    // Further completions of one prompt copy the cache of the first.
    const auto parent = std::find_if(sequences_.begin(), sequences_.end(),
                                     [&](const Sequence& each) { return each.task == task.parent; });
    if (parent == sequences_.end() || parent->lost) return false;
    llama_memory_seq_rm(memory, slot, -1, -1);
    llama_memory_seq_cp(memory, static_cast<llama_seq_id>(parent - sequences_.begin()), slot, -1, -1);
    sequence.tokens = parent->tokens;
  }
  if (sequence.tokens.size() < first) return false;
  for (size_t index = 0; begins && index < first; ++index) {
    if (sequence.tokens[index] != slots_.token(slot, index)) return false;
  }
  if (sequence.tokens.size() == first) return true;
  sequence.tokens.resize(first);
  return llama_memory_seq_rm(memory, slot, static_cast<llama_pos>(first), -1);
}

void PlainTwin::compare(llama_context* served, const llama_batch& batch) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++report_.batches;
  if (served->get_cparams().embeddings) return;
  std::vector<EditState> states(sequences_.size(), EditState::kPlain);
  bool edits = false;
  for (int i = 0; i < batch.n_tokens; ++i) {
    const auto slot = static_cast<size_t>(batch.seq_id[i][0]);
    states[slot] = edit_state(sequences_[slot].task);
    edits = edits || states[slot] == EditState::kEdits;
  }
  const auto n_vocab =
      static_cast<size_t>(llama_vocab_n_tokens(llama_model_get_vocab(llama_get_model(served))));
  for (int i = 0; i < batch.n_tokens; ++i) {
    const auto slot = static_cast<size_t>(batch.seq_id[i][0]);
    if (batch.logits[i] == 0 || sequences_[slot].lost) continue;
    const float* served_logits = llama_get_logits_ith(served, i);
    const float* twin_logits = llama_get_logits_ith(context_.get(), i);
    if (served_logits == nullptr || twin_logits == nullptr) continue;
    TwinCount& count = states[slot] == EditState::kPlain     ? report_.plain
                       : states[slot] == EditState::kNeutral ? report_.neutral
                                                             : report_.edited;
    ++count.rows;
    if (edits) ++count.with_edits;
    if (std::memcmp(served_logits, twin_logits, n_vocab * sizeof(float)) == 0) continue;
    ++count.different;
    if (states[slot] == EditState::kEdits || !report_.first.empty()) continue;
    double most = 0;
    for (size_t token = 0; token < n_vocab; ++token)
      most = std::max(most, std::abs(double(served_logits[token]) - double(twin_logits[token])));
    report_.first = "batch " + std::to_string(report_.batches) + ", slot " + std::to_string(slot) +
                    ", token " + std::to_string(batch.pos[i]) + ": off by " + std::to_string(most);
  }
}

PlainTwin::EditState PlainTwin::edit_state(int task) const {
  const LiveRegistry::Entry entry = registry_.find(task);
  if (!entry.request || entry.request->track(entry.index).plain) return EditState::kPlain;
  const EditPlan& edits = entry.request->plan.edits;
  if (edits.empty()) return EditState::kPlain;
  return std::all_of(edits.begin(), edits.end(), [](const Edit& edit) { return edit.neutral(); })
             ? EditState::kNeutral
             : EditState::kEdits;
}

}  // namespace tapline
