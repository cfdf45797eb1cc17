#include "experiment/advance.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "experiment/checks.h"

namespace tapline {

namespace {

/// `first` is the token index of the layer's first row.
void check_finite(const LayerStates& layer, size_t first) {
  for (size_t row = 0; row < layer.norms.size(); ++row) {
    if (std::isfinite(layer.norms[row])) continue;
    throw_error(ErrorCode::kCompute, Place{layer.layer, layer.point}.text(), " is not finite at token ",
                first + row, "; the model file may be damaged.");
  }
}

/// Whether a point is the residual stream, to which the model's head can be applied.
bool in_stream(Point point) {
  return point == Point::kBlockIn || point == Point::kMid || point == Point::kBlockOut;
}

/// Some models give minus infinity to impossible tokens.
bool has_bad_logit(const std::vector<float>& logits) {
  return std::any_of(logits.begin(), logits.end(),
                     [](float logit) { return !(logit <= std::numeric_limits<float>::max()); });
}

/// Checks whether the sequence can take the tokens, and returns their number.
uint32_t check_request(Passes& passes, const AdvanceRequest& request) {
  const uint32_t n_past = passes.sequence().n_past;
  check_tokens(passes, request.tokens);
  const auto n = static_cast<uint32_t>(request.tokens.size());
  if (n > passes.n_batch())
    throw_error(ErrorCode::kTokenLimit, "A pass takes at most ", passes.n_batch(), " tokens, got ", n, ".");
  if (n_past + n > passes.n_ctx())
    throw_error(ErrorCode::kTokenLimit, "The context holds ", passes.n_ctx(), " tokens; it has ", n_past,
                ", and ", n, " more were given.");
  if (!passes.causal() && n_past > 0) {
    throw Error(ErrorCode::kInvalidArgument,
                "This architecture attends in both directions, so a text is one pass.");
  }
  check_in_vocabulary(passes, "The lens's target", {request.lens_target});
  if (request.scored.empty()) return n;
  if (request.scored.size() != n)
    throw_error(ErrorCode::kInvalidArgument, request.scored.size(), " scored tokens were given for ", n,
                " tokens.");
  if (request.next_top > 0 || request.keep_logits)
    throw Error(ErrorCode::kInvalidArgument, "A pass that scores tokens cannot return other results.");
  check_in_vocabulary(passes, "The scored token", request.scored);
  return n;
}

/// The last block if the lens compares with its output.
std::vector<int> output_layers(const Passes& passes, const AdvanceRequest& request) {
  if (!request.lens_extras || !request.lens_extras->measures || !passes.stream().lens.supported) return {};
  return {passes.info().n_layer - 1};
}

class Advance {
 public:
  Advance(Passes& passes, const AdvanceRequest& request, const CancelToken& cancel)
      : passes_(passes),
        request_(request),
        cancel_(cancel),
        places_(check_places(passes, request.layers, request.points)),
        measured_(check_places(passes, request.measure.layers, {Point::kBlockOut})),
        output_place_(check_places(passes, output_layers(passes, request), {Point::kBlockOut})),
        n_(check_request(passes, request)),
        attention_(passes, request.attention, n_),
        routing_(passes, request.routing, n_),
        batch_(n_) {}

  AdvanceResult run() {
    choose();
    add_tokens();
    arm();
    const Passes::Checkpoint before = last_rows_ && wants_head_ ? passes_.checkpoint() : Passes::Checkpoint{};
    forward();
    repeat(before);
    sequence_.n_past += n_;
    sequence_.depth = depth_;
    find_next();
    read_lens();
    result_.attention = attention_.result();
    result_.routing = routing_.result();
    return std::move(result_);
  }

 private:
  /// Whether there is a second pass, and where the first one ends.
  void choose() {
    const int last_layer = passes_.info().n_layer - 1;
    int deepest = -1;
    for (const std::vector<Place>* places : {&places_, &measured_, &output_place_}) {
      for (const Place& place : *places) deepest = std::max(deepest, place.computed_at().layer);
    }
    for (const std::vector<int>* layers : {&request_.attention.layers, &request_.routing}) {
      for (const int layer : *layers) deepest = std::max(deepest, layer);
    }
    wants_head_ = request_.next_top > 0 || request_.keep_logits || !request_.scored.empty();
    at_the_end_ = deepest == last_layer;
    last_rows_ = (request_.all_rows || !request_.routing.empty()) && n_ > 1 && at_the_end_;
    leave_early_ = deepest >= 0 && !wants_head_ && (at_the_end_ || request_.early_exit);
    depth_ = leave_early_ ? deepest + 1 : last_layer + 1;
    if (depth_ > sequence_.depth)
      throw_error(ErrorCode::kInvalidArgument, "The earlier tokens were computed only up to block ",
                  sequence_.depth - 1, "; reset before going deeper.");
  }

  void add_tokens() {
    // Requesting the outputs of all rows changes the shapes in the last block, and so the last bits of the
    // answer. So with an answer, the pass is the same as without captures, and a second pass computes the
    // rows of the last block that it dropped.
    const bool every_output = !passes_.causal() || (last_rows_ && !wants_head_);
    for (uint32_t i = 0; i < n_; ++i) {
      const bool answers = (i + 1 == n_ || passes_.stream().heads_every_row) && (wants_head_ || at_the_end_);
      const bool scored = !request_.scored.empty() && request_.scored[i] >= 0;
      batch_.add(request_.tokens[i], sequence_.n_past + i, 0, every_output || answers || scored);
    }
  }

  /// Sets up readings and edits.
  void arm() {
    check_edits(passes_, request_.edits);
    result_.effects.resize(request_.edits.size());
    const uint32_t prompt = request_.prompt > 0 ? request_.prompt : sequence_.n_past + n_;
    for (uint32_t i = 0; i < n_; ++i) {
      edits_.add(request_.edits, result_.effects, static_cast<int>(i),
                 static_cast<int32_t>(sequence_.n_past + i), static_cast<int32_t>(prompt));
    }
    for (const Place& place : places_) keep(result_.layers, place, needs_states_ ? 0 : rows_);
    for (const Place& place : measured_) keep(result_.measured, place, measured_from_);
    for (const Place& place : output_place_) keep(output_, place, 0);
    for (const int layer : request_.attention.layers) {
      read({layer, Point::kAttention});
      if (request_.attention.prove) read({layer, Point::kHeadOut});
    }
    for (const int layer : request_.routing) read({layer, Point::kRouter});
    for (TapPoint& point : points_) point.only_lengths = !reads_states(point.place());
    for (const auto& [place, rows] : edits_.by_place()) {
      if (taken_.count(place) == 0) points_.push_back({place.layer, /*read=*/false, &rows, place.point});
    }
  }

  /// Makes room for the rows of a place from one on, and for the norms of all.
  void keep(std::vector<LayerStates>& layers, const Place& place, size_t from) {
    const auto width = static_cast<size_t>(passes_.stream().points.site(place).width);
    std::vector<float> states((rows_ - from) * width);
    layers.push_back(
        {place.layer, place.point, rows_, width, std::move(states), std::vector<float>(rows_), {}, {}});
    read(place.computed_at());
  }

  void read(Place place) {
    if (taken_.emplace(place, 0).second)
      points_.push_back({place.layer, /*read=*/true, edits_.at(place), place.point});
  }

  /// Whether anything but norms is returned of a place where a tensor is computed.
  bool reads_states(Place computed) const {
    if (!computed.is_vector() || computed.point == Point::kHeadOut) return true;
    for (const std::vector<LayerStates>* layers : {&result_.layers, &result_.measured, &output_}) {
      for (const LayerStates& layer : *layers) {
        if (!layer.states.empty() && Place{layer.layer, layer.point}.computed_at() == computed) return true;
      }
    }
    return false;
  }

  void run_pass(bool leave_early) {
    passes_.run(
        batch_, points_, leave_early, [this](const TappedRows& tapped) { take(tapped); }, cancel_);
  }

  void forward() {
    if (!request_.edits.empty()) passes_.taint();
    run_pass(leave_early_);
    // The logits are in llama.cpp's memory until the next pass.
    if (!request_.scored.empty()) return score();
    if (!wants_head_) return;
    const float* logits = passes_.logits(n_ - 1);
    result_.logits.assign(logits, logits + passes_.info().n_vocab);
    if (has_bad_logit(result_.logits)) passes_.taint();
  }

  /// Computes the rows of the last block that the first pass dropped.
  void repeat(const Passes::Checkpoint& before) {
    const auto dropped = [&](const TapPoint& point) { return point.read && taken_[point.place()] < n_; };
    if (!last_rows_ || std::none_of(points_.begin(), points_.end(), dropped)) return;
    passes_.restore(before);
    std::fill_n(batch_.raw.logits, n_, int8_t{1});
    for (TapPoint& point : points_) point.read = dropped(point);
    repeating_ = true;
    result_.effects.assign(request_.edits.size(), {});  // this pass includes the dropped rows
    run_pass(/*leave_early=*/true);
  }

  void take(const TappedRows& tapped) {
    taken_[tapped.place()] += tapped.count;
    const bool proof = tapped.point == Point::kHeadOut && request_.attention.prove && !repeating_;
    if (tapped.point == Point::kAttention || proof) attention_.take(tapped);
    if (tapped.point == Point::kRouter) routing_.take(tapped);
    for (std::vector<LayerStates>* layers : {&result_.layers, &result_.measured, &output_}) {
      for (LayerStates& layer : *layers) {
        if (Place{layer.layer, layer.point}.computed_at() == tapped.place()) copy(tapped, layer);
      }
    }
  }

  void copy(const TappedRows& tapped, LayerStates& layer) const {
    for (size_t row = 0; row < tapped.count; ++row) {
      const auto index = static_cast<size_t>((*tapped.indices)[row]);
      const bool last = index + 1 == n_;
      // The row of the answer comes from the first pass.
      if (last ? repeating_ : !request_.all_rows) continue;
      const size_t target = request_.all_rows ? index : 0;
      if (tapped.lengths != nullptr) {
        layer.norms[target] = static_cast<float>(tapped.lengths[row]);
        continue;
      }
      const float* values = tapped.values + row * layer.width;
      layer.norms[target] = static_cast<float>(row_length(values, layer.width));
      // What has room begins so many rows later than the norms.
      const size_t first = rows_ - layer.states.size() / layer.width;
      if (target >= first)
        std::copy_n(values, layer.width, layer.states.data() + (target - first) * layer.width);
    }
  }

  void score() {
    std::vector<const float*> rows(n_, nullptr);
    for (size_t i = 0; i < n_; ++i) {
      if (request_.scored[i] >= 0) rows[i] = passes_.logits(i);
    }
    TokenScores scores = score_tokens(rows, passes_.info().n_vocab, request_.scored, request_.scored_top,
                                      passes_.row_threads());
    for (const double score : scores.log_probabilities) {
      if (!std::isfinite(score)) passes_.taint();
    }
    result_.log_probabilities = std::move(scores.log_probabilities);
    result_.scored_top_ids = std::move(scores.top_ids);
    result_.scored_top_log_probabilities = std::move(scores.top_log_probabilities);
  }

  void find_next() {
    try {
      for (const std::vector<LayerStates>* layers : {&result_.layers, &result_.measured, &output_}) {
        for (const LayerStates& layer : *layers) check_finite(layer, sequence_.n_past - rows_);
      }
      if (request_.next_top > 0) {
        result_.next = top_tokens(result_.logits.data(), 1, passes_.info().n_vocab, request_.next_top,
                                  nullptr, passes_.row_threads());
      }
    } catch (...) {
      passes_.taint();
      passes_.clear_memory();
      throw;
    }
    if (!request_.keep_logits) std::vector<float>().swap(result_.logits);
  }

  void read_lens() {
    std::vector<llama_token> targets;
    if (request_.lens_target >= 0) {
      targets.assign(rows_, request_.lens_target);
    } else if (request_.lens_answer && request_.next_top > 0) {
      targets.assign(rows_, -1);
      targets.back() = result_.next.ids.front();
    }
    const bool supported = passes_.stream().lens.supported;
    const auto read = [&](LayerStates& layer, size_t from, int top) {
      cancel_.check();
      if (top <= 0 || !supported || !in_stream(layer.point) || from >= rows_) return;
      layer.lens.top = passes_.lens().top(layer.states.data(), rows_ - from, top,
                                          targets.empty() ? nullptr : targets.data() + from);
    };
    const bool together = request_.lens_extras && request_.lens_top > 0 && supported;
    if (together) read_together(*request_.lens_extras, targets);
    for (LayerStates& layer : result_.layers) {
      if (!together) read(layer, 0, request_.lens_top);
      if (!request_.keep_states) std::vector<float>().swap(layer.states);
    }
    for (LayerStates& layer : result_.measured) {
      read(layer, measured_from_, request_.measure.lens_top);
      std::vector<float>().swap(layer.states);
    }
  }

  /// Reads all captured places of the residual stream, also through the translators of their layers.
  void read_together(const LensExtras& extras, const std::vector<llama_token>& targets) {
    LensRequest asked;
    asked.rows = rows_;
    asked.top = request_.lens_top;
    asked.targets = targets;
    asked.entropy = extras.measures;
    std::vector<LensReading*> into;
    if (extras.measures) asked.output = output_.front().states.data();
    for (LayerStates& layer : result_.layers) {
      const bool ends = layer.point == Point::kBlockOut;
      if (!in_stream(layer.point)) continue;
      asked.places.push_back({layer.states.data(), nullptr});
      into.push_back(&layer.lens);
      const auto translator = extras.translators.find(layer.layer);
      if (!ends || translator == extras.translators.end()) continue;
      asked.places.push_back({layer.states.data(), &translator->second});
      into.push_back(&layer.translated);
    }
    if (asked.places.empty()) return;
    std::vector<LensReading> readings = passes_.lens().read(asked, cancel_);
    for (size_t i = 0; i < into.size(); ++i) *into[i] = std::move(readings[i]);
  }

  Passes& passes_;
  const AdvanceRequest& request_;
  const CancelToken& cancel_;
  Passes::Sequence& sequence_ = passes_.sequence();
  const std::vector<Place> places_;
  const std::vector<Place> measured_;
  const std::vector<Place> output_place_;
  const uint32_t n_;
  const size_t rows_ = request_.all_rows ? n_ : 1;
  /// The first row of a measured layer that the lens reads; rows_ where it reads none.
  const size_t measured_from_ = request_.measure.lens_top > 0
                                    ? std::min<size_t>(request_.measure.lens_from, rows_)
                                    : rows_;
  /// Norms alone need no copy.
  const bool needs_states_ = request_.keep_states || request_.lens_top > 0;
  AttentionReader attention_;
  RoutingReader routing_;
  TokenBatch batch_;
  BatchEdits edits_;
  std::vector<TapPoint> points_;
  std::map<Place, size_t> taken_;  // number of rows by place where a tensor is computed
  AdvanceResult result_;
  std::vector<LayerStates> output_;  // the last block's, if the lens compares with it
  bool wants_head_ = false;
  bool at_the_end_ = false;  // the last block is read
  bool last_rows_ = false;   // and rows of more tokens than the last
  bool leave_early_ = false;
  bool repeating_ = false;
  int depth_ = 0;
};

}  // namespace

AdvanceResult advance(Passes& passes, const AdvanceRequest& request, const CancelToken& cancel) {
  const auto locked = passes.lock();
  return Advance(passes, request, cancel).run();
}

}  // namespace tapline
