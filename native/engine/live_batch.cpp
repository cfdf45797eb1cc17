#include "engine/live_batch.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "base/error.h"
#include "common.h"
#include "engine/eval_callback.h"

namespace tapline {

namespace {

/// Interval, in decodes, of the search for requests that never had a slot.
constexpr unsigned kSweepEvery = 64;
/// How the server's memory splits a batch: by sequences, as each slot has separate cells. The rows of a slot
/// stay in order.
constexpr SplitKind kSplit = SplitKind::kEqualAscending;

/// Whether a generated token belongs to the requested part of the answer.
bool in_part(const Positions& positions, const LiveTrack& track, int place) {
  if (positions.part == Positions::Part::kAny) return true;
  const auto found = track.parts.find(place);
  if (found == track.parts.end()) return false;
  return positions.part == Positions::Part::kThinking ? found->second.thinks() : found->second.answers();
}

/// Whether keys, values or states that later tokens read depend on the edit: in the last block, only on its
/// input.
bool enters_cache(const Edit& change, int n_layer) {
  return change.layer + 1 < n_layer || change.point == Point::kBlockIn;
}

/// A watched token of the prompt is read in its row, a generated one in the row that predicted it.
bool prompt_row_watched(const LiveWatch& watch, int index, int n_prompt) {
  return watch.reads_rows() && index < n_prompt && watch.positions.contains(index, n_prompt);
}

bool next_watched(const LiveWatch& watch, const LiveTrack& track, int index, int n_prompt) {
  return watch.reads_rows() && index + 1 >= n_prompt && watch.positions.contains(index + 1, n_prompt) &&
         in_part(watch.positions, track, index + 1 - n_prompt);
}

}  // namespace

LiveBatch::LiveBatch(ServerSlots& slots, LiveRegistry& registry, const ResidualStream& stream, int n_threads,
                     bool in_graph)
    : slots_(slots),
      registry_(registry),
      stream_(stream),
      vocab_(llama_model_get_vocab(llama_get_model(slots.context()))),
      n_embd_(llama_model_n_embd(llama_get_model(slots.context()))),
      n_layer_(llama_model_n_layer(llama_get_model(slots.context()))),
      tap_(/*shared=*/true),
      n_threads_(n_threads),
      owners_(static_cast<size_t>(slots.count())) {
  tap_.describe(&stream_);
  if (stream_.lens.supported) {
    lenses_ = std::make_unique<LiveLenses>(llama_get_model(slots.context()), stream_.lens, n_threads);
  }
  if (in_graph) graph_ = std::make_unique<GraphEdits>(slots.context(), stream_);
  slots_.set_decode([this](llama_context* ctx, llama_batch batch) { return decode(ctx, batch); });
  slots_.set_reset([this](int slot, int own_task) { on_slot_release(slot, own_task); });
}

LiveBatch::~LiveBatch() {
  slots_.set_decode(nullptr);
  slots_.set_reset(nullptr);
}

int LiveBatch::decode(llama_context* ctx, llama_batch batch) {
  // Embedding rows of images have no tokens; live requests with images have been rejected.
  if (registry_.empty() || batch.token == nullptr || !find_owners(batch)) {
    if (graph_) graph_->disarm();
    return llama_decode(ctx, batch);
  }
  plan(batch);
  if (!arm_graph(batch)) {
    for (Owner& owner : owners_) owner.in_graph = false;
    plan(batch);
  }
  const int status = decode_armed(ctx, batch);
  if (status != 0) return status;  // the server tries again with fewer tokens, or gives up
  commit(ctx, batch);
  return status;
}

/// Requests of both kinds share a decode. A row belongs to one request, so only one of the two changes it:
/// the callback acts on a block's output before the graph's edits, which leave the rows of other requests as
/// they are to the bit, and does not touch rows of requests in the graph.
int LiveBatch::decode_armed(llama_context* ctx, const llama_batch& batch) {
  const bool in_graph = any_in_graph();
  std::vector<TapPoint> places = points();
  const bool tapped = !places.empty();
  std::vector<MicroBatch> micros;
  if (tapped) {
    micros = plan_micro_batches(batch, kSplit, llama_n_ubatch(ctx), llama_n_rs_seq(ctx));
    tap_.name_outputs(in_graph ? graph_->outputs_before_edits() : std::vector<std::string>());
    tap_.arm(
        std::move(places), /*leave_early=*/false, &micros, [this](const TappedRows& rows) { read(rows); },
        CancelToken());
  }
  int status = 0;
  try {
    std::optional<EvalCallbackScope> callback;
    if (tapped) callback.emplace(ctx, BlockTap::on_node, &tap_);
    status = llama_decode(ctx, batch);
  } catch (...) {
    tap_.disarm();
    if (in_graph) graph_->abandon();
    throw;
  }
  if (tapped && status == 0) {
    try {
      tap_.check();
    } catch (const Error& error) {
      fail_owners(/*in_graph=*/false, error.what());
    }
  }
  tap_.disarm();
  if (in_graph && status != 0) graph_->abandon();
  if (in_graph && status == 0) collect_graph(batch);
  return status;
}

void LiveBatch::fail_owners(bool in_graph, const std::string& sentence) {
  for (const Owner& owner : owners_) {
    if (owner.request && owner.in_graph == in_graph) fail(owner.request, sentence);
  }
}

std::vector<EditEffect>& LiveBatch::Owner::effects_at(int index) {
  if (index < n_prompt) return effects;
  std::vector<EditEffect>& of_row = answer_effects[index];
  of_row.resize(effects.size());
  return of_row;
}

/// Whether any row of the batch belongs to a live request.
bool LiveBatch::find_owners(const llama_batch& batch) {
  if (++decodes_ % kSweepEvery == 0) {
    registry_.sweep([this](int task) {
      for (int slot = 0; slot < slots_.count(); ++slot) {
        if (slots_.task(slot).id == task) return true;
      }
      return false;
    });
  }
  bool any = false;
  for (Owner& owner : owners_) owner = Owner();
  std::vector<bool> seen(owners_.size());
  for (int i = 0; i < batch.n_tokens; ++i) {
    const auto slot = static_cast<size_t>(batch.seq_id[i][0]);
    if (seen[slot]) continue;
    seen[slot] = true;
    const ServerSlots::Task task = slots_.task(static_cast<int>(slot));
    const LiveRegistry::Entry entry = registry_.find(task.id);
    if (!entry.request) continue;
    Owner& owner = owners_[slot];
    owner.request = entry.request;
    owner.track = &entry.request->track(entry.index);
    owner.n_prompt = owner.track->n_prompt;
    owner.effects.resize(entry.request->plan.edits.size());
    owner.in_graph = graph_ && !without_graph_ && fits_graph(*entry.request);
    any = true;
  }
  return any;
}

/// Applies the requests' plans to the rows of this batch.
void LiveBatch::plan(const llama_batch& batch) {
  edits_.clear();
  graph_edits_.clear();
  rows_.clear();
  for (Owner& owner : owners_) owner.states_bytes = 0;
  row_at_.assign(static_cast<size_t>(batch.n_tokens), -1);
  guarded_.assign(static_cast<size_t>(batch.n_tokens), nullptr);
  read_.clear();
  lengths_.clear();
  for (int i = 0; i < batch.n_tokens; ++i) {
    const int slot = batch.seq_id[i][0];
    Owner& owner = owners_[static_cast<size_t>(slot)];
    if (!owner.request) continue;
    const LivePlan& plan = owner.request->plan;
    const int index = batch.pos[i];
    const std::lock_guard<std::mutex> lock(owner.track->mutex);
    track_token(*owner.track, plan, batch.token[i], index - owner.n_prompt);
    const auto acts = [&](size_t edit) {
      const Edit& change = plan.edits[edit];
      const int gate = plan.gates[edit];
      if (gate >= 0) {
        const int reached = owner.track->reached[static_cast<size_t>(gate)];
        if (reached < 0 || index <= reached) return false;
      }
      if (!change.positions.contains(index, owner.n_prompt)) return false;
      if (!in_part(change.positions, *owner.track, index - owner.n_prompt)) return false;
      if (change.neutral()) return true;
      owner.track->edited = true;
      if (enters_cache(change, n_layer_))
        owner.track->first_edited = std::min(owner.track->first_edited, index);
      return true;
    };
    BatchEdits& edits = owner.in_graph ? graph_edits_ : edits_;
    if (!owner.track->plain && !plan.edits.empty()) edits.add(plan.edits, owner.effects_at(index), i, acts);
    if (owner.track->depends_on_edit() && batch.logits[i] == 0 && n_layer_ > 1) {
      guarded_[static_cast<size_t>(i)] = &owner;
      want(owner, {n_layer_ - 2}, i);
    }
    const bool next = next_watched(plan.watch, *owner.track, index, owner.n_prompt);
    const bool watched = next || prompt_row_watched(plan.watch, index, owner.n_prompt);
    if (!watched && (plan.conditions.empty() || index + 1 < owner.n_prompt)) continue;
    row_at_[static_cast<size_t>(i)] = static_cast<int>(rows_.size());
    Row row;
    row.slot = slot;
    row.index = index;
    row.watched = watched;
    for (const LiveProbe& probe : plan.probes) want(owner, probe.place, i);
    if (watched) row.reading = reading_of(plan, owner, i);
    row.reading.token = batch.token[i];
    row.reading.next_watched = next;
    row.reading.probes.assign(plan.probes.size(), std::numeric_limits<double>::quiet_NaN());
    rows_.push_back(std::move(row));
  }
}

/// Saves a generated token, and the part of the answer to which the next one belongs.
void LiveBatch::track_token(LiveTrack& track, const LivePlan& plan, llama_token token, int place) {
  if (place < 0) return;
  track.generated[place] = token;
  const auto found = track.parts.find(place);
  if (found == track.parts.end()) return;
  track.parts[place + 1] =
      found->second.after(common_token_to_piece(vocab_, token, /*special=*/true), plan.thinking);
}

/// Notes that a row of a place is read. Rows come in ascending order.
void LiveBatch::want(const Owner& owner, const Place& place, int batch_index) {
  const Place computed = place.computed_at();
  if (owner.in_graph) {
    lengths_.insert(computed);
    return;
  }
  std::vector<int>& rows = read_[computed];
  if (rows.empty() || rows.back() != batch_index) rows.push_back(batch_index);
}

std::vector<TapPoint> LiveBatch::points() const {
  std::map<Place, const std::vector<int>*> places;  // the rows that are read
  for (const auto& [place, rows] : edits_.by_place()) places[place] = nullptr;
  for (const auto& [place, rows] : read_) places[place] = &rows;
  std::vector<TapPoint> points;
  for (const auto& [place, rows] : places) {
    points.push_back(
        {place.layer, rows != nullptr, edits_.at(place), place.point, /*read_edited=*/false, rows});
  }
  return points;
}

void LiveBatch::on_slot_release(int slot, int task) {
  if (registry_.empty()) return;
  const LiveRegistry::Entry entry = registry_.find(task);
  if (!entry.request) return;
  if (entry.request->failure().empty()) {
    slots_.cut(slot, entry.request->track(entry.index).first_edited);
  } else {
    slots_.wipe(slot);
  }
  registry_.remove(task);
  if (lenses_) lenses_->evict(registry_);
}

}  // namespace tapline
