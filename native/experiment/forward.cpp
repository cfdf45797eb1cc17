#include "experiment/forward.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "experiment/attention.h"
#include "experiment/checks.h"
#include "experiment/forward_results.h"
#include "experiment/tail_pass.h"

namespace tapline {

class Forward::Run {
 public:
  Run(Passes& passes, ForwardRequest request) : passes_(passes), request_(std::move(request)) {
    const auto locked = passes_.lock();
    check();
    passes_.clear_memory();
    results_.emplace(passes_, request_);
  }

  size_t total() const { return request_.sequences.size(); }
  size_t done() const { return next_; }

  void step(const CancelToken& cancel) {
    const auto locked = passes_.lock();
    cancel.check();
    if (chunk_ == 0) passes_.clear_memory();
    if (!looked_for_tail_) look_for_tail(cancel);
    const std::vector<ForwardPart> parts = next_parts();
    try {
      compute(parts, cancel);
    } catch (const ForwardNotFinite& found) {
      passes_.taint();
      passes_.clear_memory();
      if (parts.size() == 1)
        throw_error(ErrorCode::kCompute, found.where, "; the model file may be damaged.");
      // Architectures that multiply masked values by zero spread the NaN of one text to the others.
      alone_until_ = parts.back().sequence + 1;
      return;
    }
    const ForwardPart& last = parts.back();
    chunk_ = last.end == tokens(last.sequence).size() ? 0 : last.end;
    next_ = chunk_ == 0 ? last.sequence + 1 : last.sequence;
    if (next_ == total()) passes_.clear_memory();
  }

  ForwardResult take() { return results_->release(); }

 private:
  const std::vector<llama_token>& tokens(size_t sequence) const {
    return request_.sequences[sequence].tokens;
  }

  void check() {
    if (total() == 0) throw Error(ErrorCode::kInvalidArgument, "At least one sequence is needed.");
    if (request_.captures.empty() && request_.logits == ForwardLogits::kNone)
      throw Error(ErrorCode::kInvalidArgument, "A forward pass needs captures or logits.");
    for (const Place& place : request_.captures) {
      check_layers(passes_, {place.layer});
      check_place(passes_, place);
      if (place.point == Point::kRouter)
        throw Error(ErrorCode::kInvalidArgument, "Routers cannot be captured here.");
      attention_ = attention_ || place.point == Point::kAttention;
    }
    check_distinct(request_.captures, [](const Place& place) { return place.text(); });
    if (request_.logits != ForwardLogits::kNone) check_causal(passes_);
    for (size_t i = 0; i < total(); ++i) {
      const ForwardSequence& sequence = request_.sequences[i];
      check_tokens(passes_, sequence.tokens);
      check_edits(passes_, sequence.edits);
      const bool one_pass = attention_ || !passes_.causal();
      const size_t most = one_pass ? passes_.n_batch() : passes_.n_ctx();
      if (sequence.tokens.size() > most)
        throw_error(ErrorCode::kTokenLimit, "Sequence ", i, " has ", sequence.tokens.size(),
                    " tokens; at most ", most,
                    attention_ ? " are possible with attention." : " are possible.");
    }
  }

  /// Whole texts, as many as fit, or the next chunk of a long one.
  std::vector<ForwardPart> next_parts() const {
    const size_t room = passes_.n_batch();
    const size_t long_end = std::min(tokens(next_).size(), chunk_ + room);
    if (tokens(next_).size() > room) return {{next_, chunk_, long_end, 0}};
    const bool packs = passes_.causal() && passes_.stream().packs_sequences && !attention_;
    const size_t most = packs && next_ >= alone_until_ ? passes_.n_seq_max() : 1;
    std::vector<ForwardPart> parts;
    for (size_t i = next_, used = 0; i < total() && parts.size() < most; ++i) {
      const size_t length = tokens(i).size();
      if (used + length > room) break;
      parts.push_back({i, 0, length, used});
      used += length;
    }
    return parts;
  }

  /// Before the first batch, because comparing clears the context.
  void look_for_tail(const CancelToken& cancel) {
    looked_for_tail_ = true;
    if (request_.logits == ForwardLogits::kNone || request_.logits == ForwardLogits::kAll) return;
    const auto longer = [](const ForwardSequence& sequence) { return sequence.tokens.size() > 1; };
    const auto found = std::find_if(request_.sequences.begin(), request_.sequences.end(), longer);
    if (found == request_.sequences.end() || !drops_captured_rows()) return;
    tail_ = has_tail(passes_, found->tokens, cancel);
  }

  void compute(const std::vector<ForwardPart>& parts, const CancelToken& cancel) {
    TokenBatch batch(parts.back().row + parts.back().end - parts.back().begin);
    std::vector<std::vector<EditEffect>> effects;  // by part
    effects.reserve(parts.size());
    BatchEdits edits;
    for (const ForwardPart& part : parts) {
      const EditPlan& plan = request_.sequences[part.sequence].edits;
      const std::vector<llama_token>& text = tokens(part.sequence);
      effects.emplace_back(plan.size());
      if (!plan.empty()) passes_.taint();
      for (size_t token = part.begin; token < part.end; ++token) {
        edits.add(plan, effects.back(), static_cast<int>(batch.size()), static_cast<int32_t>(token),
                  static_cast<int32_t>(text.size()));
        batch.add(text[token], static_cast<uint32_t>(token),
                  static_cast<llama_seq_id>(part.sequence - parts.front().sequence),
                  passes_.stream().heads_every_row || results_->has_logits(part.sequence, token));
      }
    }
    const bool logits = std::count(batch.raw.logits, batch.raw.logits + batch.size(), 1) > 0;
    std::vector<TailRow> tail;
    if (logits && tail_) tail = tail_rows(parts, batch);
    std::vector<TapPoint> points = tap_points(edits, /*with_middle=*/!tail.empty());
    AttentionReader attention(passes_, attention_request(), batch.size());
    const auto sink = [&](const TappedRows& tapped) {
      if (tapped.point == Point::kAttention) return attention.take(tapped);
      if (!tail.empty() && tapped.place() == middle()) keep_middles(tapped, parts, tail);
      copy(tapped, parts, !tail.empty());
    };
    results_->expect(parts, batch.size());
    if (!logits || !tail.empty()) set_outputs(batch, parts);
    if (!tail.empty()) {
      passes_.run(batch, points, /*leave_early=*/true, sink, cancel);
      const auto tail_sink = [&](const TappedRows& tapped) {
        for (size_t row = 0; row < tapped.count; ++row)
          results_->take(tapped, row, tail_at_[static_cast<size_t>((*tapped.indices)[row])], parts);
      };
      run_tail(passes_, tail, after_middle(), tail_sink, cancel);
      results_->take_logits(passes_, parts, /*of_tail=*/true);
      return finish(parts, effects, attention);
    }
    const Passes::Checkpoint before = passes_.checkpoint();
    passes_.run(batch, points, /*leave_early=*/!logits && !points.empty(), sink, cancel);
    if (logits) results_->take_logits(passes_, parts, /*of_tail=*/false);
    if (results_->lacks()) {
      passes_.restore(before);
      set_outputs(batch, parts);
      for (TapPoint& point : points) point.read = results_->lacks_at(point.place());
      for (std::vector<EditEffect>& effect : effects) effect.assign(effect.size(), {});
      passes_.run(batch, points, /*leave_early=*/true, sink, cancel);
    }
    finish(parts, effects, attention);
  }

  Place middle() const { return {passes_.info().n_layer - 1, Point::kMid}; }

  /// Whether a pass drops rows in the last block that are captured there.
  bool drops_captured_rows() const {
    return std::any_of(request_.captures.begin(), request_.captures.end(), [&](const Place& place) {
      return place.computed_at().layer == passes_.info().n_layer - 1 && place.point >= Point::kAttnOut;
    });
  }

  /// The rows with logits, if the batch ends its texts and drops others that are captured; else none.
  std::vector<TailRow> tail_rows(const std::vector<ForwardPart>& parts, const TokenBatch& batch) {
    std::vector<TailRow> rows;
    tail_at_.clear();
    for (const ForwardPart& part : parts) {
      const auto length = static_cast<int32_t>(tokens(part.sequence).size());
      if (part.end < tokens(part.sequence).size()) return {};
      for (size_t token = part.begin; token < part.end; ++token) {
        const size_t at = part.row + token - part.begin;
        if (batch.raw.logits[at] == 0) continue;
        tail_at_.push_back(at);
        rows.push_back({batch.raw.token[at],
                        batch.raw.seq_id[at][0],
                        {},
                        &request_.sequences[part.sequence].edits,
                        static_cast<int32_t>(token),
                        length});
      }
    }
    return rows.size() < batch.size() ? std::move(rows) : std::vector<TailRow>{};
  }

  /// Rows come in the order of the batch.
  void keep_middles(const TappedRows& tapped, const std::vector<ForwardPart>& parts,
                    std::vector<TailRow>& tail) {
    auto next = std::find_if(tail.begin(), tail.end(), [](const TailRow& row) { return row.mid.empty(); });
    for (size_t row = 0; row < tapped.count && next != tail.end(); ++row) {
      const auto index = static_cast<size_t>((*tapped.indices)[row]);
      const ForwardPart& part = part_of(parts, index);
      if (!results_->has_logits(part.sequence, part.begin + index - part.row)) continue;
      const float* values = tapped.values + row * tapped.width;
      if (!all_finite(values, tapped.width))
        fail_not_finite("A logit is not finite", part, part.begin + index - part.row);
      next->mid.assign(values, values + tapped.width);
      ++next;
    }
  }

  AttentionRequest attention_request() const {
    AttentionRequest request;
    for (const Place& place : request_.captures) {
      if (place.point == Point::kAttention) request.layers.push_back(place.layer);
    }
    return request;
  }

  /// Each place once, where its tensor is computed; one that is only edited is not read.
  std::vector<TapPoint> tap_points(const BatchEdits& edits, bool with_middle) const {
    std::map<Place, bool> read;
    if (with_middle) read[middle()] = true;
    for (const auto& [place, rows] : edits.by_place()) read.emplace(place, false);
    for (const Place& place : request_.captures) read[place.computed_at()] = true;
    std::vector<TapPoint> points;
    for (const auto& [place, reads] : read)
      points.push_back({place.layer, reads, edits.at(place), place.point, /*read_edited=*/true});
    return points;
  }

  /// Makes the last block compute the rows that are captured there; of each text, at least the last.
  void set_outputs(TokenBatch& batch, const std::vector<ForwardPart>& parts) const {
    const auto in_last_block = [&](const Place& place) {
      return place.computed_at().layer == passes_.info().n_layer - 1;
    };
    const bool every =
        !passes_.causal() || std::any_of(request_.captures.begin(), request_.captures.end(), in_last_block);
    for (const ForwardPart& part : parts) {
      int8_t* const wanted = batch.raw.logits + part.row;
      std::fill_n(wanted, part.end - part.begin, static_cast<int8_t>(every ? 1 : 0));
      wanted[part.end - part.begin - 1] = 1;
    }
  }

  /// In the order of the request.
  std::vector<Place> after_middle() const {
    std::vector<Place> places;
    for (const Place& place : request_.captures) {
      if (middle() < place) places.push_back(place);
    }
    return places;
  }

  void copy(const TappedRows& tapped, const std::vector<ForwardPart>& parts, bool tail_follows) {
    const bool after = tail_follows && middle() < tapped.place();
    for (size_t row = 0; row < tapped.count; ++row) {
      const auto index = static_cast<size_t>((*tapped.indices)[row]);
      const ForwardPart& part = part_of(parts, index);
      // With logits, a row has the bits of the pass that computes these.
      if (after && results_->has_logits(part.sequence, part.begin + index - part.row)) continue;
      results_->take(tapped, row, index, parts);
    }
  }

  void finish(const std::vector<ForwardPart>& parts, const std::vector<std::vector<EditEffect>>& effects,
              AttentionReader& attention) {
    results_->finish(parts, effects, attention);
    passes_.sequence().n_past = static_cast<uint32_t>(parts.back().end);
  }

  Passes& passes_;
  const ForwardRequest request_;
  std::optional<ForwardResults> results_;
  bool attention_ = false;
  bool looked_for_tail_ = false;
  bool tail_ = false;            // logits follow from the middle of the last block
  size_t next_ = 0;              // the sequence that the next batch begins with
  size_t chunk_ = 0;             // the tokens of it that are done
  size_t alone_until_ = 0;       // sequences before this one are computed one at a time
  std::vector<size_t> tail_at_;  // by row of a tail: its row in the batch
};

Forward::Forward(Passes& passes, ForwardRequest request)
    : run_(std::make_unique<Run>(passes, std::move(request))) {}
Forward::~Forward() = default;
size_t Forward::total() const {
  return run_->total();
}
size_t Forward::done() const {
  return run_->done();
}
void Forward::step(const CancelToken& cancel) {
  run_->step(cancel);
}
ForwardResult Forward::take() {
  return run_->take();
}

ForwardResult forward(Passes& passes, const ForwardRequest& request, const CancelToken& cancel,
                      const CountProgress& progress) {
  Forward run(passes, request);
  while (run.done() < run.total()) {
    run.step(cancel);
    progress(run.done(), run.total());
  }
  return run.take();
}

}  // namespace tapline
