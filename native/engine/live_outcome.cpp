#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "engine/live_batch.h"

namespace tapline {

namespace {

/// The number of sampled logits: a non-finite residual stream makes all of them non-finite.
constexpr int kLogitsLookedAt = 16;

}  // namespace

/// After a successful decode: records readings and effects in the requests.
void LiveBatch::commit(llama_context* ctx, const llama_batch& batch) {
  read_lenses();
  read_features();
  refuse_non_finite(ctx, batch);
  for (Owner& owner : owners_) {
    if (!owner.request) continue;
    LiveTrack& track = *owner.track;
    const std::lock_guard<std::mutex> lock(track.mutex);
    (owner.in_graph ? track.in_graph : track.by_callback) = true;
    for (size_t i = 0; i < owner.effects.size(); ++i) track.effects[i].add(owner.effects[i]);
    for (auto& [index, of_row] : owner.answer_effects) track.answer_effects[index] = std::move(of_row);
  }
  for (Row& row : rows_) {
    LiveTrack& track = *owners_[static_cast<size_t>(row.slot)].track;
    {
      const std::lock_guard<std::mutex> lock(track.mutex);
      LiveReading& stored = track.rows[row.index];
      track.states_bytes += (row.reading.states.size() - stored.states.size()) * sizeof(float);
      stored = std::move(row.reading);
    }
    check_conditions(row);
  }
}

void LiveBatch::read_lenses() {
  std::vector<LiveLenses::Row> rows;
  for (Row& row : rows_) {
    if (row.reading.lens_rows.empty()) continue;
    const LiveRequest& request = *owners_[static_cast<size_t>(row.slot)].request;
    rows.push_back({row.slot, &request.plan.watch, &row.reading});
  }
  if (lenses_ && !rows.empty()) lenses_->read(rows);
}

/// Conditions apply to the rows that predict tokens, over a number of consecutive tokens.
void LiveBatch::check_conditions(const Row& row) {
  const Owner& owner = owners_[static_cast<size_t>(row.slot)];
  const LivePlan& plan = owner.request->plan;
  if (row.index + 1 < owner.n_prompt) return;
  for (size_t c = 0; c < plan.conditions.size(); ++c) {
    const LiveCondition& condition = plan.conditions[c];
    int streak = 0;
    for (int index = row.index; streak < condition.tokens && index + 1 >= owner.n_prompt; --index, ++streak) {
      LiveTrack& track = index < owner.n_prompt ? *owner.track->prompt : *owner.track;
      const std::lock_guard<std::mutex> lock(track.mutex);
      const auto found = track.rows.find(index);
      if (found == track.rows.end() || !condition.holds(found->second.probes[condition.probe])) break;
    }
    if (streak < condition.tokens) continue;
    // Completions of one prompt share its last row, so it decides for all of them.
    const int task = slots_.task(row.slot).id;
    for (int slot = 0; slot < slots_.count(); ++slot) {
      const ServerSlots::Task other = slots_.task(slot);
      if (slot != row.slot && (row.index >= owner.n_prompt || other.parent != task)) continue;
      const LiveRegistry::Entry entry = registry_.find(other.id);
      if (entry.request != owner.request) continue;
      LiveTrack& track = entry.request->track(entry.index);
      const std::lock_guard<std::mutex> lock(track.mutex);
      if (track.reached[c] < 0) track.reached[c] = row.index;
      if (plan.stop != static_cast<int>(c)) continue;
      track.stopped = true;
      slots_.stop_after_next_token(slot);
    }
  }
}

/// Ends a request whose edits made its embedding non-finite.
void LiveBatch::check_embedding(llama_context* ctx, llama_seq_id sequence, const Owner& owner,
                                const std::string& sentence) {
  const float* embedding = llama_get_embeddings_seq(ctx, sequence);
  if (embedding == nullptr || !owner.request->failure().empty()) return;
  const auto finite = [](float value) { return std::isfinite(value); };
  if (!std::all_of(embedding, embedding + n_embd_, finite)) fail(owner.request, sentence);
}

/// Ends requests whose edits made numbers non-finite, and gives the sampler finite logits until they have
/// ended.
void LiveBatch::refuse_non_finite(llama_context* ctx, const llama_batch& batch) {
  const std::string sentence =
      "The interventions made the model's numbers non-finite: the change is too large.";
  const auto too_long = [](const EditEffect& effect) { return overflows(effect.change_length); };
  for (Owner& owner : owners_) {
    if (!owner.request) continue;
    owner.overflowed |= std::any_of(owner.effects.begin(), owner.effects.end(), too_long);
    for (const auto& [index, of_row] : owner.answer_effects)
      owner.overflowed |= std::any_of(of_row.begin(), of_row.end(), too_long);
    if (owner.overflowed) fail(owner.request, sentence);
  }
  const int n_vocab = llama_vocab_n_tokens(vocab_);
  const int step = std::max(1, n_vocab / kLogitsLookedAt);
  for (int i = 0; i < batch.n_tokens; ++i) {
    const Owner& owner = owners_[static_cast<size_t>(batch.seq_id[i][0])];
    if (batch.logits[i] == 0 || !owner.request) continue;
    bool broken = !owner.request->failure().empty();
    if (!broken && !owner.track->depends_on_edit()) continue;
    if (owner.request->plan.embeds) {
      check_embedding(ctx, batch.seq_id[i][0], owner, sentence);
      continue;
    }
    float* logits = llama_get_logits_ith(ctx, i);
    if (logits == nullptr) continue;
    for (int token = 0; !broken && token < n_vocab; token += step) broken = !std::isfinite(logits[token]);
    if (!broken) continue;
    std::fill_n(logits, n_vocab, 0.0F);
    fail(owner.request, sentence);
  }
}

/// Also ends its other completions: each may have a copy of the damaged cache.
void LiveBatch::fail(const std::shared_ptr<LiveRequest>& request, const std::string& sentence) {
  request->fail(sentence);
  for (int slot = 0; slot < slots_.count(); ++slot) {
    if (registry_.find(slots_.task(slot).id).request == request) slots_.stop_after_next_token(slot);
  }
}

}  // namespace tapline
