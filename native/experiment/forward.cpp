#include "experiment/forward.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "experiment/attention.h"
#include "experiment/checks.h"
#include "experiment/tail_pass.h"

namespace tapline {

namespace {

/// Token indices of a sequence, which count from its end if they are negative.
std::vector<size_t> resolve(const std::vector<int32_t>& positions, size_t tokens, size_t sequence) {
  std::vector<size_t> found;
  for (const int32_t position : positions) {
    const int64_t index = position < 0 ? static_cast<int64_t>(tokens) + position : position;
    if (index < 0 || index >= static_cast<int64_t>(tokens))
      throw_error(ErrorCode::kInvalidArgument, "Position ", position, " does not exist in sequence ",
                  sequence, ", which has ", tokens, " tokens.");
    found.push_back(static_cast<size_t>(index));
  }
  check_distinct(found, [](size_t index) { return "Position " + std::to_string(index); });
  return found;
}

bool all_finite(const float* values, size_t count) {
  // A sum of zeros unless one of the numbers is infinite or not a number.
  float sum = 0;
  for (size_t i = 0; i < count; ++i) sum += values[i] * 0.0F;
  return sum == 0;
}

void shorten(std::vector<float>& values, std::vector<uint16_t>& halves) {
  static_assert(sizeof(ggml_fp16_t) == sizeof(uint16_t));
  halves.resize(values.size());
  ggml_fp32_to_fp16_row(values.data(), halves.data(), static_cast<int64_t>(values.size()));
  std::vector<float>().swap(values);
}

constexpr size_t kNowhere = static_cast<size_t>(-1);

/// Tokens [begin, end) of a sequence, which are the rows of a batch from `row` on.
struct Part {
  size_t sequence;
  size_t begin;
  size_t end;
  size_t row;
};

}  // namespace

class Forward::Run {
 public:
  Run(Passes& passes, ForwardRequest request) : passes_(passes), request_(std::move(request)) {
    const auto locked = passes_.lock();
    check();
    passes_.clear_memory();
    lay_out();
  }

  size_t total() const { return request_.sequences.size(); }
  size_t done() const { return next_; }

  void step(const CancelToken& cancel) {
    const auto locked = passes_.lock();
    cancel.check();
    if (chunk_ == 0) passes_.clear_memory();
    if (!looked_for_tail_) look_for_tail(cancel);
    const std::vector<Part> parts = next_parts();
    try {
      compute(parts, cancel);
    } catch (const NotFinite& found) {
      passes_.taint();
      passes_.clear_memory();
      if (parts.size() == 1)
        throw_error(ErrorCode::kCompute, found.where, "; the model file may be damaged.");
      // Architectures that multiply masked values by zero spread the NaN of one text to the others.
      alone_until_ = parts.back().sequence + 1;
      return;
    }
    const Part& last = parts.back();
    chunk_ = last.end == tokens(last.sequence).size() ? 0 : last.end;
    next_ = chunk_ == 0 ? last.sequence + 1 : last.sequence;
    if (next_ == total()) passes_.clear_memory();
  }

  ForwardResult take() {
    if (request_.half) {
      shorten(result_.logits, result_.half_logits);
      for (ForwardCapture& capture : result_.captures) shorten(capture.values, capture.halves);
    }
    return std::move(result_);
  }

 private:
  struct NotFinite {
    std::string where;
  };
  /// By sequence: the row in the result of its first captured token, and by token the distance from there.
  struct Rows {
    size_t first = 0;
    std::vector<size_t> of_token;
    size_t at(size_t token) const { return of_token[token] == kNowhere ? kNowhere : first + of_token[token]; }
  };

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

  /// Finds the row of every requested token in the result, and makes room.
  void lay_out() {
    const auto make = [&](std::vector<Rows>& rows, const auto& wanted) {
      size_t count = 0;
      for (size_t i = 0; i < total(); ++i) {
        Rows of{count, std::vector<size_t>(tokens(i).size(), kNowhere)};
        size_t at = 0;
        for (const size_t token : wanted(i)) of.of_token[token] = at++;
        count += at;
        rows.push_back(std::move(of));
      }
      return count;
    };
    const auto every = [&](size_t i) {
      std::vector<size_t> all(tokens(i).size());
      for (size_t token = 0; token < all.size(); ++token) all[token] = token;
      return all;
    };
    const size_t captured = make(rows_, [&](size_t i) {
      return request_.positions.empty() ? every(i) : resolve(request_.positions, tokens(i).size(), i);
    });
    const size_t with_logits = make(logit_rows_, [&](size_t i) {
      if (request_.logits == ForwardLogits::kAll) return every(i);
      if (request_.logits == ForwardLogits::kLast) return std::vector<size_t>{tokens(i).size() - 1};
      return resolve(request_.logit_positions, tokens(i).size(), i);
    });
    std::vector<size_t> sizes{with_logits * static_cast<size_t>(passes_.info().n_vocab)};
    for (const Place& place : request_.captures) {
      const Site& site = passes_.stream().points.site(place);
      ForwardCapture capture;
      capture.place = place;
      if (place.is_vector()) capture.width = static_cast<size_t>(site.width);
      if (place.point == Point::kHeadOut || !place.is_vector())
        capture.heads = static_cast<size_t>(site.heads);
      sizes.push_back(captured * capture.width);
      for (size_t i = 0; i < total() && !place.is_vector(); ++i)
        sizes.back() += capture.heads * tokens(i).size() * tokens(i).size();
      result_.captures.push_back(std::move(capture));
    }
    const size_t width = request_.half ? sizeof(uint16_t) : sizeof(float);
    const size_t bytes = std::accumulate(sizes.begin(), sizes.end(), size_t{0}) * width;
    if (bytes > request_.max_bytes)
      throw_error(ErrorCode::kTokenLimit, "The result would have ", bytes, " bytes; at most ",
                  request_.max_bytes, " are possible in one call.");
    result_.logits.resize(sizes[0]);
    for (size_t i = 0; i < result_.captures.size(); ++i) result_.captures[i].values.resize(sizes[i + 1]);
    for (const ForwardSequence& sequence : request_.sequences)
      result_.effects.emplace_back(sequence.edits.size());
  }

  /// Whole texts, as many as fit, or the next chunk of a long one.
  std::vector<Part> next_parts() const {
    const size_t room = passes_.n_batch();
    const size_t long_end = std::min(tokens(next_).size(), chunk_ + room);
    if (tokens(next_).size() > room) return {{next_, chunk_, long_end, 0}};
    const bool packs = passes_.causal() && passes_.stream().packs_sequences && !attention_;
    const size_t most = packs && next_ >= alone_until_ ? passes_.n_seq_max() : 1;
    std::vector<Part> parts;
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

  bool has_logits(size_t sequence, size_t token) const {
    return logit_rows_[sequence].of_token[token] != kNowhere;
  }

  void compute(const std::vector<Part>& parts, const CancelToken& cancel) {
    TokenBatch batch(parts.back().row + parts.back().end - parts.back().begin);
    std::vector<std::vector<EditEffect>> effects;  // by part
    effects.reserve(parts.size());
    BatchEdits edits;
    for (const Part& part : parts) {
      const EditPlan& plan = request_.sequences[part.sequence].edits;
      const std::vector<llama_token>& text = tokens(part.sequence);
      effects.emplace_back(plan.size());
      if (!plan.empty()) passes_.taint();
      for (size_t token = part.begin; token < part.end; ++token) {
        edits.add(plan, effects.back(), static_cast<int>(batch.size()), static_cast<int32_t>(token),
                  static_cast<int32_t>(text.size()));
        batch.add(text[token], static_cast<uint32_t>(token),
                  static_cast<llama_seq_id>(part.sequence - parts.front().sequence),
                  passes_.stream().heads_every_row || logit_rows_[part.sequence].at(token) != kNowhere);
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
    expect_rows(parts, batch.size());
    if (!logits || !tail.empty()) set_outputs(batch, parts);
    if (!tail.empty()) {
      passes_.run(batch, points, /*leave_early=*/true, sink, cancel);
      const auto tail_sink = [&](const TappedRows& tapped) {
        for (size_t row = 0; row < tapped.count; ++row)
          take(tapped, row, tail_at_[static_cast<size_t>((*tapped.indices)[row])], parts);
      };
      run_tail(passes_, tail, after_middle(), tail_sink, cancel);
      copy_logits(parts, /*of_tail=*/true);
      return finish(parts, effects, attention);
    }
    const Passes::Checkpoint before = passes_.checkpoint();
    passes_.run(batch, points, /*leave_early=*/!logits && !points.empty(), sink, cancel);
    if (logits) copy_logits(parts, /*of_tail=*/false);
    const auto left = [](size_t rows) { return rows > 0; };
    if (std::any_of(left_.begin(), left_.end(), left)) {
      passes_.restore(before);
      set_outputs(batch, parts);
      for (TapPoint& point : points) point.read = left_at(point.place());
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
  std::vector<TailRow> tail_rows(const std::vector<Part>& parts, const TokenBatch& batch) {
    std::vector<TailRow> rows;
    tail_at_.clear();
    for (const Part& part : parts) {
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
  void keep_middles(const TappedRows& tapped, const std::vector<Part>& parts, std::vector<TailRow>& tail) {
    auto next = std::find_if(tail.begin(), tail.end(), [](const TailRow& row) { return row.mid.empty(); });
    for (size_t row = 0; row < tapped.count && next != tail.end(); ++row) {
      const auto index = static_cast<size_t>((*tapped.indices)[row]);
      const Part& part = part_of(parts, index);
      if (!has_logits(part.sequence, part.begin + index - part.row)) continue;
      const float* values = tapped.values + row * tapped.width;
      if (!all_finite(values, tapped.width))
        fail("A logit is not finite", part, part.begin + index - part.row);
      next->mid.assign(values, values + tapped.width);
      ++next;
    }
  }

  static const Part& part_of(const std::vector<Part>& parts, size_t batch_index) {
    const auto after = std::upper_bound(parts.begin(), parts.end(), batch_index,
                                        [](size_t at, const Part& part) { return at < part.row; });
    return *(after - 1);
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

  /// Sets the number of rows that each capture takes from these parts.
  void expect_rows(const std::vector<Part>& parts, size_t batch_rows) {
    size_t rows = 0;
    for (const Part& part : parts) {
      for (size_t token = part.begin; token < part.end; ++token)
        rows += rows_[part.sequence].at(token) == kNowhere ? 0 : 1;
    }
    left_.clear();
    for (const Place& place : request_.captures) left_.push_back(place.is_vector() ? rows : 0);
    taken_.assign(request_.captures.size(), std::vector<bool>(batch_rows));
  }

  bool left_at(Place computed) const {
    for (size_t i = 0; i < left_.size(); ++i) {
      if (left_[i] > 0 && request_.captures[i].computed_at() == computed) return true;
    }
    return false;
  }

  /// Makes the last block compute the rows that are captured there; of each text, at least the last.
  void set_outputs(TokenBatch& batch, const std::vector<Part>& parts) const {
    const auto in_last_block = [&](const Place& place) {
      return place.computed_at().layer == passes_.info().n_layer - 1;
    };
    const bool every =
        !passes_.causal() || std::any_of(request_.captures.begin(), request_.captures.end(), in_last_block);
    for (const Part& part : parts) {
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

  void copy(const TappedRows& tapped, const std::vector<Part>& parts, bool tail_follows) {
    const bool after = tail_follows && middle() < tapped.place();
    for (size_t row = 0; row < tapped.count; ++row) {
      const auto index = static_cast<size_t>((*tapped.indices)[row]);
      const Part& part = part_of(parts, index);
      // With logits, a row has the bits of the pass that computes these.
      if (after && has_logits(part.sequence, part.begin + index - part.row)) continue;
      take(tapped, row, index, parts);
    }
  }

  /// Copies a row of a batch into the captures of its place.
  void take(const TappedRows& tapped, size_t row, size_t index, const std::vector<Part>& parts) {
    const Part& part = part_of(parts, index);
    const size_t token = part.begin + index - part.row;
    const size_t target = rows_[part.sequence].at(token);
    if (target == kNowhere) return;
    for (size_t i = 0; i < request_.captures.size(); ++i) {
      // A second pass computes the rows of the first one again.
      if (left_[i] == 0 || !(request_.captures[i].computed_at() == tapped.place()) || taken_[i][index])
        continue;
      ForwardCapture& capture = result_.captures[i];
      const float* values = tapped.values + row * capture.width;
      if (!all_finite(values, capture.width)) fail(capture.place.text() + " is not finite", part, token);
      std::copy_n(values, capture.width, capture.values.data() + target * capture.width);
      taken_[i][index] = true;
      --left_[i];
    }
  }

  /// `of_tail`: the batch had the rows with logits only.
  void copy_logits(const std::vector<Part>& parts, bool of_tail) {
    const auto width = static_cast<size_t>(passes_.info().n_vocab);
    // Some models give minus infinity to impossible tokens.
    const auto possible = [](float logit) { return logit <= std::numeric_limits<float>::max(); };
    size_t next = 0;
    for (const Part& part : parts) {
      for (size_t token = part.begin; token < part.end; ++token) {
        const size_t target = logit_rows_[part.sequence].at(token);
        if (target == kNowhere) continue;
        const float* logits = passes_.logits(of_tail ? next++ : part.row + token - part.begin);
        if (!std::all_of(logits, logits + width, possible)) fail("A logit is not finite", part, token);
        std::copy_n(logits, width, result_.logits.data() + target * width);
      }
    }
  }

  [[noreturn]] static void fail(const std::string& what, const Part& part, size_t token) {
    throw NotFinite{what + " at token " + std::to_string(token) + " of sequence " +
                    std::to_string(part.sequence)};
  }

  void finish(const std::vector<Part>& parts, const std::vector<std::vector<EditEffect>>& effects,
              AttentionReader& attention) {
    for (size_t i = 0; i < parts.size(); ++i) {
      std::vector<EditEffect>& sums = result_.effects[parts[i].sequence];
      for (size_t e = 0; e < sums.size(); ++e) sums[e].add(effects[i][e]);
    }
    std::vector<LayerAttention> layers = attention.result();
    auto layer = layers.begin();
    for (ForwardCapture& capture : result_.captures) {
      if (capture.place.point != Point::kAttention) continue;
      std::copy(layer->weights.begin(), layer->weights.end(),
                capture.values.begin() + attention_at_[layer->layer]);
      attention_at_[layer->layer] += static_cast<std::ptrdiff_t>(layer->weights.size());
      ++layer;
    }
    passes_.sequence().n_past = static_cast<uint32_t>(parts.back().end);
  }

  Passes& passes_;
  const ForwardRequest request_;
  ForwardResult result_;
  std::vector<Rows> rows_;  // by sequence
  std::vector<Rows> logit_rows_;
  bool attention_ = false;
  bool looked_for_tail_ = false;
  bool tail_ = false;                           // logits follow from the middle of the last block
  size_t next_ = 0;                             // the sequence that the next batch begins with
  size_t chunk_ = 0;                            // the tokens of it that are done
  size_t alone_until_ = 0;                      // sequences before this one are computed one at a time
  std::vector<size_t> tail_at_;                 // by row of a tail: its row in the batch
  std::vector<size_t> left_;                    // of the batch: by capture, the rows still to take
  std::vector<std::vector<bool>> taken_;        // by capture and row of the batch
  std::map<int, std::ptrdiff_t> attention_at_;  // by layer: where the next text begins
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
