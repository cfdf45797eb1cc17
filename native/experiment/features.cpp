#include <algorithm>
#include <cmath>
#include <string>

#include "base/counted_rows.h"
#include "experiment/layer_order.h"
#include "experiment/passes.h"
#include "experiment/token_batch.h"

namespace tapline {

namespace {

constexpr size_t kNowhere = static_cast<size_t>(-1);

/// Where a value is that is not finite.
struct Broken {
  size_t sequence;
  size_t row;  // of its sequence
  Place place;
};

/// The rows that each sequence has in the result.
class RowPlaces {
 public:
  explicit RowPlaces(const FeatureRequest& request) : all_(request.rows == FeatureRows::kAll) {
    for (size_t i = 0; i < request.sequences.size(); ++i)
      starts_.push_back(starts_.back() +
                        (all_ ? request.sequences[i].size() - request.start_of(i) : size_t{1}));
  }

  size_t rows() const { return starts_.back(); }
  size_t first(size_t sequence) const { return starts_[sequence]; }
  size_t end(size_t sequence) const { return starts_[sequence + 1]; }

 private:
  bool all_;
  std::vector<size_t> starts_{0};
};

/// The first of the sequences [first, end) with a value that is not finite; `end` where there is none.
Broken first_not_finite(const FeatureResult& result, const RowPlaces& places, size_t first, size_t end,
                        size_t width, Point point) {
  for (size_t sequence = first; sequence < end; ++sequence) {
    for (size_t l = 0; l < result.layers.size(); ++l) {
      for (size_t row = places.first(sequence); row < places.end(sequence); ++row) {
        const float* values = result.states[l].data() + row * width;
        if (!std::all_of(values, values + width, [](float value) { return std::isfinite(value); }))
          return {sequence, row - places.first(sequence), {result.layers[l], point}};
      }
    }
  }
  return {end, 0, {}};
}

void check_starts(const FeatureRequest& request) {
  if (request.starts.empty()) return;
  if (request.starts.size() != request.sequences.size()) {
    throw Error(ErrorCode::kInvalidArgument, "Rows of " + std::to_string(request.sequences.size()) +
                                                 " sequences have " + std::to_string(request.starts.size()) +
                                                 " starts.");
  }
  for (size_t i = 0; i < request.starts.size(); ++i) {
    const auto length = static_cast<int64_t>(request.sequences[i].size());
    if (request.starts[i] >= 0 && request.starts[i] < length) continue;
    throw Error(ErrorCode::kInvalidArgument,
                std::string(request.rows == FeatureRows::kMean ? "The mean" : "What is read") +
                    " of sequence " + std::to_string(i) + " starts at token " +
                    std::to_string(request.starts[i]) + "; it has " + std::to_string(length) + ".");
  }
}

std::string place_text(const Broken& broken, const FeatureRequest& request) {
  const std::string text = "text " + std::to_string(broken.sequence);
  if (request.rows == FeatureRows::kMean) return "in the mean of " + text;
  if (request.rows == FeatureRows::kLast) return "at the last token of " + text;
  return "at token " + std::to_string(request.start_of(broken.sequence) + broken.row) + " of " + text;
}

/// The rows of one batch's whole sequences, layer by layer: a mean needs all of a text's to say which count.
class RowsForMeans {
 public:
  RowsForMeans(size_t layers, size_t rows, size_t width)
      : rows_(rows), width_(width), values_(layers), left_(layers, rows) {}

  /// Whether the layer is complete now.
  bool add(size_t layer, size_t index, const float* row) {
    values_[layer].resize(rows_ * width_);
    std::copy_n(row, width_, values_[layer].data() + index * width_);
    return --left_[layer] == 0;
  }

  const float* rows(size_t layer, size_t first) const { return values_[layer].data() + first * width_; }
  void release(size_t layer) { std::vector<float>().swap(values_[layer]); }

 private:
  size_t rows_;
  size_t width_;
  std::vector<std::vector<float>> values_;
  std::vector<size_t> left_;
};

}  // namespace

FeatureResult Passes::features(const FeatureRequest& request, const CancelToken& cancel,
                               const std::function<void(size_t, size_t)>& progress) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto width = static_cast<size_t>(model_->info().n_embd);
  const size_t total = request.sequences.size();
  const bool bidirectional = !causal();
  const size_t most_sequences = bidirectional || !stream_.packs_sequences ? 1 : n_seq_max_;
  FeatureResult result;
  result.layers = check_layers(request.layers);
  check_hidden(request.point);
  if (result.layers.empty()) throw Error(ErrorCode::kInvalidArgument, "There are no layers to capture.");
  for (size_t i = 0; i < total; ++i) {
    check_tokens(request.sequences[i]);
    if (request.sequences[i].size() > n_batch_) {
      throw Error(ErrorCode::kTokenLimit, "A sequence has at most " + std::to_string(n_batch_) +
                                              " tokens, number " + std::to_string(i) + " has " +
                                              std::to_string(request.sequences[i].size()) + ".");
    }
  }
  check_starts(request);
  const RowPlaces places(request);
  const bool mean = request.rows == FeatureRows::kMean;
  // The last block computes the rows only that somebody wants an output of.
  const bool every_output = bidirectional || (request.rows != FeatureRows::kLast &&
                                              result.layers.back() == model_->info().n_layer - 1);
  result.states.assign(result.layers.size(), std::vector<float>(places.rows() * width));
  result.excluded.resize(result.layers.size());
  std::vector<TapPoint> points;
  for (const int layer : result.layers) {
    const Place met = Place{layer, request.point}.met();
    points.push_back({met.layer, true, nullptr, met.point});
  }

  const Forgetting forgetting{*this};
  size_t done = 0;
  size_t alone_until = 0;  // sequences before this one are computed one at a time
  while (done < total) {
    cancel.check();
    // As many whole sequences as fit: fewer, larger batches use the machine best.
    clear_memory();
    TokenBatch batch(n_batch_);
    std::vector<size_t> row_of;  // of each token in the batch: where its row goes, or nowhere
    size_t next = done;
    const size_t most = done < alone_until ? 1 : most_sequences;
    while (next < total && next - done < most) {
      const std::vector<llama_token>& tokens = request.sequences[next];
      if (batch.size() + tokens.size() > std::min(n_batch_, n_ctx_)) break;
      for (size_t i = 0; i < tokens.size(); ++i) {
        const bool last = i + 1 == tokens.size();
        batch.add(tokens[i], static_cast<uint32_t>(i), static_cast<llama_seq_id>(next - done),
                  every_output || last);
        const size_t start = request.start_of(next);
        const bool wanted = request.rows == FeatureRows::kLast ? last : i >= start;
        const size_t behind = wanted && request.rows == FeatureRows::kAll ? i - start : 0;
        row_of.push_back(wanted ? places.first(next) + behind : kNowhere);
      }
      ++next;
    }
    RowsForMeans whole(mean ? result.layers.size() : 0, row_of.size(), width);
    std::vector<ExcludedRows> excluded(result.layers.size());
    const auto take_means = [&](size_t layer) {
      size_t first = 0;
      for (size_t sequence = done; sequence < next; ++sequence) {
        const size_t tokens = request.sequences[sequence].size();
        excluded[layer] +=
            mean_of_counted(whole.rows(layer, first), tokens, width,
                            bos_tokens(model_->info().bos, request.sequences[sequence]),
                            request.start_of(sequence), result.states[layer].data() + sequence * width);
        first += tokens;
      }
      whole.release(layer);
    };
    const auto sink = [&](const TappedRows& tapped) {
      const auto at = std::find_if(result.layers.begin(), result.layers.end(), [&](int asked) {
        return Place{asked, request.point}.met() == tapped.place();
      });
      const auto layer = static_cast<size_t>(at - result.layers.begin());
      for (size_t row = 0; row < tapped.count; ++row) {
        const auto index = static_cast<size_t>((*tapped.indices)[row]);
        const float* values = tapped.values + row * width;
        if (mean) {
          if (whole.add(layer, index, values)) take_means(layer);
        } else if (row_of[index] != kNowhere) {
          std::copy_n(values, width, result.states[layer].data() + row_of[index] * width);
        }
      }
    };
    run_tapped(batch, points, /*leave_early=*/true, sink, cancel);
    const Broken broken = first_not_finite(result, places, done, next, width, request.point);
    if (broken.sequence < next) {
      // Where an architecture multiplies what a row must not see by zero, one text's NaN is its neighbours',
      // too.
      doubtful_ = true;
      if (next - done > 1) {
        alone_until = next;
        continue;
      }
      throw Error(ErrorCode::kCompute, broken.place.text() + " is not finite " + place_text(broken, request) +
                                           "; the model file may be damaged.");
    }
    for (size_t l = 0; l < excluded.size(); ++l) result.excluded[l] += excluded[l];
    done = next;
    if (progress) progress(done, total);
  }
  result.states = in_order_of(request.layers, result.layers, std::move(result.states));
  result.excluded = in_order_of(request.layers, result.layers, std::move(result.excluded));
  result.layers = request.layers;
  return result;
}

}  // namespace tapline
