#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "engine/live_batch.h"

namespace tapline {

namespace {

/// Logits that are looked at: a residual stream that is not finite spoils all of them.
constexpr int kLogitsLookedAt = 16;
/// A row longer than this overflows when it is squared: norms make zeros or infinities of it.
constexpr double kLongestRow = 1e18;

}  // namespace

/// The decode has succeeded: what was read and done is now part of the requests.
void LiveBatch::commit(llama_context* ctx, const llama_batch& batch) {
  tell_lens();
  refuse_non_finite(ctx, batch);
  for (Owner& owner : owners_) {
    if (!owner.request) continue;
    LiveTrack& track = *owner.track;
    const std::lock_guard<std::mutex> lock(track.mutex);
    for (size_t i = 0; i < owner.effects.size(); ++i) track.effects[i].add(owner.effects[i]);
    for (auto& [index, of_row] : owner.answer_effects) track.answer_effects[index] = std::move(of_row);
  }
  for (Row& row : rows_) {
    LiveTrack& track = *owners_[static_cast<size_t>(row.slot)].track;
    {
      const std::lock_guard<std::mutex> lock(track.mutex);
      LiveReading& kept = track.rows[row.index];
      track.states_bytes += (row.reading.states.size() - kept.states.size()) * sizeof(float);
      kept = std::move(row.reading);
    }
    judge(row);
  }
}

/// The lens of all rows that asked for it, as one product. Where one request's rows are not finite there is
/// none for any of them, so each is read by itself: refuse_non_finite() ends the one that they belong to.
void LiveBatch::tell_lens() {
  if (!lens_ || read_lens(-1)) return;
  for (int slot = 0; slot < slots_.count(); ++slot) {
    if (read_lens(slot)) continue;
    for (Row& row : rows_) {
      if (row.slot == slot) row.reading.lens_read.assign(row.reading.lens_read.size(), false);
    }
  }
}

/// The same of one slot's rows, -1: of all. False where they could not be read.
bool LiveBatch::read_lens(int slot) {
  const auto width = static_cast<size_t>(n_embd_);
  const auto most_of = [this](const Row& row) {
    return owners_[static_cast<size_t>(row.slot)].request->plan.watch.lens_top;
  };
  int most = 0;
  std::vector<float> states;
  for (const Row& row : rows_) {
    const LiveReading& reading = row.reading;
    if (reading.lens_rows.empty() || (slot >= 0 && row.slot != slot)) continue;
    most = std::max(most, most_of(row));
    for (size_t layer = 0; layer < reading.lens_read.size(); ++layer) {
      if (!reading.lens_read[layer]) continue;
      const float* values = reading.lens_rows.data() + layer * width;
      states.insert(states.end(), values, values + width);
    }
  }
  if (states.empty()) return true;
  TopTokens top;
  try {
    top = lens_->top(states.data(), states.size() / width, most);
  } catch (const Error&) {
    return false;
  }
  const auto count = static_cast<size_t>(top.k);
  size_t next = 0;
  for (Row& row : rows_) {
    LiveReading& reading = row.reading;
    if (reading.lens_rows.empty() || (slot >= 0 && row.slot != slot)) continue;
    const size_t wanted = std::min(static_cast<size_t>(most_of(row)), count);
    for (const bool read : reading.lens_read) {
      if (!read) continue;
      const size_t first = next++ * count;
      for (size_t i = first; i < first + wanted; ++i) {
        reading.lens_ids.push_back(top.ids[i]);
        reading.lens_probabilities.push_back(top.probabilities[i]);
      }
    }
    reading.lens_rows = {};
  }
  return true;
}

/// Conditions look at the rows that choose tokens, over so many tokens in a row.
void LiveBatch::judge(const Row& row) {
  const Owner& owner = owners_[static_cast<size_t>(row.slot)];
  const LivePlan& plan = owner.request->plan;
  if (row.index + 1 < owner.n_prompt) return;
  for (size_t c = 0; c < plan.conditions.size(); ++c) {
    const LiveCondition& condition = plan.conditions[c];
    int held = 0;
    for (int index = row.index; held < condition.tokens && index + 1 >= owner.n_prompt; --index, ++held) {
      LiveTrack& track = index < owner.n_prompt ? *owner.track->prompt : *owner.track;
      const std::lock_guard<std::mutex> lock(track.mutex);
      const auto found = track.rows.find(index);
      if (found == track.rows.end() || !condition.met(found->second.probes[condition.probe])) break;
    }
    if (held < condition.tokens) continue;
    // Completions of one prompt share its last row: what it decides, it decides for all of them.
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

/// Ends requests whose edits made the model's numbers meaningless, and gives the sampler something finite to
/// choose from meanwhile.
void LiveBatch::refuse_non_finite(llama_context* ctx, const llama_batch& batch) {
  const int n_vocab = llama_vocab_n_tokens(llama_model_get_vocab(llama_get_model(ctx)));
  const int step = std::max(1, n_vocab / kLogitsLookedAt);
  for (int i = 0; i < batch.n_tokens; ++i) {
    const int slot = batch.seq_id[i][0];
    Owner& owner = owners_[static_cast<size_t>(slot)];
    if (batch.logits[i] == 0 || !owner.edited) continue;
    float* logits = llama_get_logits_ith(ctx, i);
    if (logits == nullptr) continue;
    bool finite = true;
    for (const auto* effects : {&owner.effects, &owner.effects_at(batch.pos[i])}) {
      for (const EditEffect& effect : *effects) finite = finite && effect.change_length < kLongestRow;
    }
    for (int token = 0; finite && token < n_vocab; token += step) finite = std::isfinite(logits[token]);
    if (finite) continue;
    std::fill_n(logits, n_vocab, 0.0F);
    fail(
        slot,
        "The interventions made the model's numbers non-finite; the change is too large for its arithmetic.");
  }
}

void LiveBatch::fail(int slot, const std::string& sentence) {
  LiveTrack& track = *owners_[static_cast<size_t>(slot)].track;
  const std::lock_guard<std::mutex> lock(track.mutex);
  if (track.failure.empty()) track.failure = sentence;
  slots_.stop_after_next_token(slot);
}

}  // namespace tapline
