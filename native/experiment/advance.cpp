#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "experiment/passes.h"
#include "experiment/token_batch.h"

namespace tapline {

namespace {

/// `first` is the place in its text of the layer's first row.
void check_finite(const LayerStates& layer, size_t first) {
  for (size_t row = 0; row < layer.norms.size(); ++row) {
    if (std::isfinite(layer.norms[row])) continue;
    throw Error(ErrorCode::kCompute, Place{layer.layer, layer.point}.text() + " is not finite at token " +
                                         std::to_string(first + row) + "; the model file may be damaged.");
  }
}

/// Whether a point is the residual stream itself, of which the model's head can be asked, and no part of it.
bool in_stream(Point point) {
  return point == Point::kBlockIn || point == Point::kMid || point == Point::kBlockOut;
}

/// Minus infinity is what some models give to what cannot be said.
bool spoiled(const std::vector<float>& logits) {
  return std::any_of(logits.begin(), logits.end(),
                     [](float logit) { return !(logit <= std::numeric_limits<float>::max()); });
}

}  // namespace

Passes::Mark Passes::mark() {
  Mark mark{n_past_, {}};
  const ModelInfo& info = model_->info();
  if (n_past_ == 0 || !(info.hybrid || info.recurrent)) return mark;
  mark.recurrent.resize(llama_state_seq_get_size_ext(ctx_, 0, LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY));
  const size_t written = llama_state_seq_get_data_ext(ctx_, mark.recurrent.data(), mark.recurrent.size(), 0,
                                                      LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY);
  if (written != mark.recurrent.size())
    throw Error(ErrorCode::kInternal, "The recurrent state of a sequence could not be copied.");
  return mark;
}

void Passes::back_to(const Mark& mark) {
  llama_memory_t memory = llama_get_memory(ctx_);
  if (memory == nullptr) return;
  if (mark.n_past == 0) {
    llama_memory_clear(memory, /*data=*/false);
    return;
  }
  const bool restored =
      mark.recurrent.empty() ||
      llama_state_seq_set_data_ext(ctx_, mark.recurrent.data(), mark.recurrent.size(), 0,
                                   LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY) == mark.recurrent.size();
  if (restored && llama_memory_seq_rm(memory, 0, static_cast<llama_pos>(mark.n_past), -1)) return;
  clear_memory();
  throw Error(ErrorCode::kInternal, "The memory of a sequence could not be set back.");
}

AttentionReader Passes::attention_reader(const AttentionRequest& request, size_t tokens) const {
  check_layers(request.layers);
  std::vector<LayerAttention> layers;
  for (const int layer : request.layers) {
    const Site& site = check_place({layer, Point::kAttention});
    if (request.prove) check_place({layer, Point::kHeadOut});
    LayerAttention found;
    found.layer = layer;
    found.heads = request.heads;
    for (int head = 0; request.heads.empty() && head < site.heads; ++head) found.heads.push_back(head);
    for (const int head : found.heads) {
      if (head < 0 || head >= site.heads) {
        throw Error(ErrorCode::kInvalidArgument, "Head " + std::to_string(head) + " does not exist: block " +
                                                     std::to_string(layer) + " has " +
                                                     std::to_string(site.heads) + " heads, 0 to " +
                                                     std::to_string(site.heads - 1) + ".");
      }
      if (std::count(found.heads.begin(), found.heads.end(), head) > 1)
        throw Error(ErrorCode::kInvalidArgument, "Head " + std::to_string(head) + " is listed twice.");
    }
    layers.push_back(std::move(found));
  }
  if (!layers.empty() && n_past_ > 0) {
    throw Error(ErrorCode::kInvalidArgument,
                "Attention is read of a text in one pass, from its beginning; reset before.");
  }
  return {std::move(layers), tokens, causal()};
}

RoutingReader Passes::routing_reader(const std::vector<int>& layers, size_t tokens) const {
  check_layers(layers);
  std::vector<LayerRouting> wanted;
  for (const int layer : layers) {
    const Site& site = check_place({layer, Point::kRouter});
    wanted.push_back({layer, site.experts, site.width, {}, {}});
  }
  return {std::move(wanted), tokens, n_past_};
}

void Passes::check_scored(const AdvanceRequest& request) const {
  if (request.scored.size() != request.tokens.size()) {
    throw Error(ErrorCode::kInvalidArgument, std::to_string(request.scored.size()) +
                                                 " scored tokens were given for " +
                                                 std::to_string(request.tokens.size()) + " tokens.");
  }
  if (request.next_top > 0 || request.keep_logits) {
    throw Error(ErrorCode::kInvalidArgument, "A pass that scores tokens gives no other answer.");
  }
  for (const llama_token token : request.scored) {
    if (token >= model_->info().n_vocab) {
      throw Error(ErrorCode::kInvalidArgument, "The scored token " + std::to_string(token) +
                                                   " is outside the vocabulary of " +
                                                   std::to_string(model_->info().n_vocab) + " tokens.");
    }
  }
}

void Passes::score(const AdvanceRequest& request, AdvanceResult& result) {
  std::vector<const float*> rows(request.scored.size(), nullptr);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (request.scored[i] < 0) continue;
    rows[i] = llama_get_logits_ith(ctx_, static_cast<int32_t>(i));
    if (rows[i] == nullptr) throw Error(ErrorCode::kUnsupportedArchitecture, "The model computes no logits.");
  }
  TokenScores scores =
      score_tokens(rows, model_->info().n_vocab, request.scored, request.scored_top, *row_threads_);
  for (const double score : scores.log_probabilities) doubtful_ = doubtful_ || !std::isfinite(score);
  result.log_probabilities = std::move(scores.log_probabilities);
  result.scored_top_ids = std::move(scores.top_ids);
  result.scored_top_log_probabilities = std::move(scores.top_log_probabilities);
}

AdvanceResult Passes::advance(const AdvanceRequest& request, const CancelToken& cancel) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const ModelInfo& info = model_->info();
  const std::vector<Place> wanted = check_places(request.layers, request.points);
  check_tokens(request.tokens);
  const auto n = static_cast<uint32_t>(request.tokens.size());
  if (n > n_batch_) {
    throw Error(ErrorCode::kTokenLimit, "A pass takes at most " + std::to_string(n_batch_) + " tokens, got " +
                                            std::to_string(n) + ".");
  }
  if (n_past_ + n > n_ctx_) {
    throw Error(ErrorCode::kTokenLimit, "The context holds " + std::to_string(n_ctx_) + " tokens; " +
                                            std::to_string(n_past_) + " are there and " + std::to_string(n) +
                                            " more were given.");
  }
  const bool bidirectional = !causal();
  if (bidirectional && n_past_ > 0) {
    throw Error(ErrorCode::kInvalidArgument,
                "This architecture attends in both directions, so a text is one pass.");
  }

  if (request.lens_target >= info.n_vocab) {
    throw Error(ErrorCode::kInvalidArgument, "The lens's target " + std::to_string(request.lens_target) +
                                                 " is outside the vocabulary of " +
                                                 std::to_string(info.n_vocab) + " tokens.");
  }
  const bool scores = !request.scored.empty();
  if (scores) check_scored(request);
  const bool wants_head = request.next_top > 0 || request.keep_logits || scores;
  int deepest = -1;
  for (const Place& place : wanted) deepest = std::max(deepest, place.met().layer);
  AttentionReader attention = attention_reader(request.attention, n);
  for (const int layer : request.attention.layers) deepest = std::max(deepest, layer);
  RoutingReader routing = routing_reader(request.routing, n);
  for (const int layer : request.routing) deepest = std::max(deepest, layer);
  const bool at_the_end = deepest == info.n_layer - 1;
  const bool last_rows = (request.all_rows || !request.routing.empty()) && n > 1 && at_the_end;
  // Asking for the outputs of all rows changes the shapes that the last block computes with, and with them
  // the last bits of the answer. So where an answer is wanted, the pass is the one that captures nothing, and
  // rows of the last block that it has dropped are computed by a second one.
  const bool every_output = bidirectional || (last_rows && !wants_head);
  const bool leave_early = deepest >= 0 && !wants_head && (at_the_end || request.early_exit);
  const int depth = leave_early ? deepest + 1 : info.n_layer;
  if (depth > depth_) {
    throw Error(ErrorCode::kInvalidArgument, "The earlier tokens were computed through block " +
                                                 std::to_string(depth_ - 1) +
                                                 " only; reset before going deeper.");
  }

  TokenBatch batch(n);
  for (uint32_t i = 0; i < n; ++i) {
    const bool wanted = (i + 1 == n || stream_.heads_every_row) && (wants_head || at_the_end);
    const bool scored = scores && request.scored[i] >= 0;
    batch.add(request.tokens[i], n_past_ + i, 0, every_output || wanted || scored);
  }
  check_edits(request.edits);
  for (const Edit& edit : request.edits) {
    if (std::find(wanted.begin(), wanted.end(), edit.place()) == wanted.end())
      throw Error(ErrorCode::kInvalidArgument, "An edited layer must be among the layers.");
  }

  AdvanceResult result;
  result.effects.resize(request.edits.size());
  BatchEdits edits;
  for (uint32_t i = 0; i < n; ++i) {
    edits.add(request.edits, result.effects, static_cast<int>(i), static_cast<int32_t>(n_past_ + i),
              static_cast<int32_t>(n_past_ + n));
  }
  std::vector<TapPoint> points;
  const size_t rows = request.all_rows ? n : 1;
  // Where only norms are wanted, nothing is copied.
  const bool needs_states = request.keep_states || request.lens_top > 0;
  std::map<Place, size_t> taken;  // rows of each place where a tensor is met
  for (const Place& place : wanted) {
    const auto width = static_cast<size_t>(stream_.points.site(place).width);
    std::vector<float> states(needs_states ? rows * width : 0);
    result.layers.push_back(
        {place.layer, place.point, rows, width, std::move(states), std::vector<float>(rows), {}});
    const Place met = place.met();
    if (taken.emplace(met, 0).second) points.push_back({met.layer, true, edits.at(met), met.point});
  }
  for (const int layer : request.attention.layers) {
    points.push_back({layer, true, nullptr, Point::kAttention});
    if (request.attention.prove && taken.emplace(Place{layer, Point::kHeadOut}, 0).second)
      points.push_back({layer, true, nullptr, Point::kHeadOut});
  }
  for (const int layer : request.routing) points.push_back({layer, true, nullptr, Point::kRouter});
  bool second = false;
  const auto take = [&](LayerStates& layer, const TappedRows& tapped) {
    for (size_t row = 0; row < tapped.count; ++row) {
      const auto index = static_cast<size_t>((*tapped.indices)[row]);
      if (!request.all_rows && index + 1 != n) continue;
      if (second && index + 1 == n) continue;  // the answering row is the first pass's
      const size_t target = request.all_rows ? index : 0;
      const size_t width = layer.width;
      const float* values = tapped.values + row * width;
      layer.norms[target] = static_cast<float>(row_length(values, width));
      if (needs_states) std::copy_n(values, width, layer.states.data() + target * width);
    }
  };
  const auto sink = [&](const TappedRows& tapped) {
    taken[tapped.place()] += tapped.count;
    const bool proof = tapped.point == Point::kHeadOut && request.attention.prove && !second;
    if (tapped.point == Point::kAttention || proof) attention.take(tapped);
    if (tapped.point == Point::kRouter) routing.take(tapped);
    for (LayerStates& layer : result.layers) {
      if (Place{layer.layer, layer.point}.met() == tapped.place()) take(layer, tapped);
    }
  };

  const Mark before = last_rows && wants_head ? mark() : Mark{};
  doubtful_ = doubtful_ || !request.edits.empty();
  run_tapped(batch, points, leave_early, sink, cancel);
  // The head's numbers are llama.cpp's until the next pass.
  if (scores) {
    score(request, result);
  } else if (wants_head) {
    const float* logits = llama_get_logits_ith(ctx_, static_cast<int32_t>(n) - 1);
    if (logits == nullptr) throw Error(ErrorCode::kUnsupportedArchitecture, "The model computes no logits.");
    result.logits.assign(logits, logits + info.n_vocab);
    doubtful_ = doubtful_ || spoiled(result.logits);
  }
  const auto dropped = [&](const TapPoint& point) { return taken[point.place()] < n; };
  if (last_rows && std::any_of(points.begin(), points.end(), dropped)) {
    back_to(before);
    std::fill_n(batch.raw.logits, n, int8_t{1});
    for (TapPoint& point : points) point.read = dropped(point);
    second = true;
    result.effects.assign(request.edits.size(), {});  // this pass has the last block's other rows, too
    run_tapped(batch, points, /*leave_early=*/true, sink, cancel);
  }
  n_past_ += n;
  depth_ = depth;
  try {
    for (const LayerStates& layer : result.layers) check_finite(layer, n_past_ - rows);
    if (request.next_top > 0)
      result.next =
          top_tokens(result.logits.data(), 1, info.n_vocab, request.next_top, nullptr, *row_threads_);
  } catch (...) {
    doubtful_ = true;
    clear_memory();
    throw;
  }
  if (!request.keep_logits) std::vector<float>().swap(result.logits);
  std::vector<int32_t> targets;
  if (request.lens_target >= 0) {
    targets.assign(rows, request.lens_target);
  } else if (request.lens_answer && request.next_top > 0) {
    targets.assign(rows, -1);
    targets.back() = result.next.ids.front();
  }
  for (LayerStates& layer : result.layers) {
    cancel.check();
    if (request.lens_top > 0 && stream_.lens.supported && in_stream(layer.point)) {
      layer.lens =
          lens().top(layer.states.data(), rows, request.lens_top, targets.empty() ? nullptr : targets.data());
    }
    if (!request.keep_states) std::vector<float>().swap(layer.states);
  }
  result.attention = attention.result();
  result.routing = routing.result();
  return result;
}

}  // namespace tapline
