#include "experiment/features.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "experiment/checks.h"

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

/// The first of the sequences [first, end) with a value that is not finite, and the lowest layer that has it;
/// `end` where there is none.
Broken first_not_finite(const FeatureResult& result, const RowPlaces& places, size_t first, size_t end,
                        size_t width, Point point) {
  Broken broken{end, 0, {}};
  for (size_t sequence = first; sequence < end && broken.sequence == end; ++sequence) {
    for (size_t l = 0; l < result.layers.size(); ++l) {
      if (broken.sequence == sequence && broken.place.layer < result.layers[l]) continue;
      for (size_t row = places.first(sequence); row < places.end(sequence); ++row) {
        const float* values = result.states[l].data() + row * width;
        if (std::all_of(values, values + width, [](float value) { return std::isfinite(value); })) continue;
        broken = {sequence, row - places.first(sequence), {result.layers[l], point}};
        break;
      }
    }
  }
  return broken;
}

/// The deepest layer of a request that can be computed.
int check_request(const Passes& passes, const FeatureRequest& request) {
  const std::vector<int> ascending = check_layers(passes, request.layers);
  check_hidden(passes, request.point);
  if (ascending.empty()) throw Error(ErrorCode::kInvalidArgument, "There are no layers to capture.");
  for (size_t i = 0; i < request.sequences.size(); ++i) {
    check_tokens(passes, request.sequences[i]);
    if (request.sequences[i].size() <= passes.n_batch()) continue;
    throw Error(ErrorCode::kTokenLimit, "A sequence has at most " + std::to_string(passes.n_batch()) +
                                            " tokens, number " + std::to_string(i) + " has " +
                                            std::to_string(request.sequences[i].size()) + ".");
  }
  if (request.starts.empty()) return ascending.back();
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
  return ascending.back();
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

class Features {
 public:
  Features(Passes& passes, const FeatureRequest& request, const CancelToken& cancel)
      : passes_(passes), request_(request), cancel_(cancel), deepest_(check_request(passes, request)) {
    result_.layers = request.layers;
    result_.states.assign(request.layers.size(), std::vector<float>(places_.rows() * width_));
    result_.excluded.resize(request.layers.size());
    for (const int layer : request.layers) {
      const Place place = Place{layer, request.point}.computed_at();
      points_.push_back({place.layer, /*read=*/true, nullptr, place.point});
    }
  }

  FeatureResult run(const CountProgress& progress) {
    const size_t total = request_.sequences.size();
    const size_t most = !passes_.causal() || !passes_.stream().packs_sequences ? 1 : passes_.n_seq_max();
    const Passes::ClearAtEnd clear{passes_};
    size_t alone_until = 0;  // sequences before this one are computed one at a time
    for (size_t done = 0; done < total;) {
      cancel_.check();
      passes_.clear_memory();
      const size_t next = compute(done, done < alone_until ? 1 : most);
      const Broken broken = first_not_finite(result_, places_, done, next, width_, request_.point);
      if (broken.sequence < next) {
        // Where an architecture multiplies what a row must not see by zero, one text's NaN is its
        // neighbours', too.
        passes_.taint();
        if (next - done > 1) {
          alone_until = next;
          continue;
        }
        throw Error(ErrorCode::kCompute, broken.place.text() + " is not finite " +
                                             place_text(broken, request_) +
                                             "; the model file may be damaged.");
      }
      for (size_t l = 0; l < excluded_.size(); ++l) result_.excluded[l] += excluded_[l];
      done = next;
      progress(done, total);
    }
    return std::move(result_);
  }

 private:
  /// Computes as many whole sequences from `first` on as fit: fewer, larger batches use the machine best.
  /// Returns the first one that did not.
  size_t compute(size_t first, size_t most) {
    TokenBatch batch(passes_.n_batch());
    std::vector<size_t> row_of;  // of each token in the batch: where its row goes, or nowhere
    size_t next = first;
    while (next < request_.sequences.size() && next - first < most) {
      const std::vector<llama_token>& tokens = request_.sequences[next];
      if (batch.size() + tokens.size() > std::min(passes_.n_batch(), passes_.n_ctx())) break;
      for (size_t i = 0; i < tokens.size(); ++i) {
        const bool last = i + 1 == tokens.size();
        batch.add(tokens[i], static_cast<uint32_t>(i), static_cast<llama_seq_id>(next - first),
                  every_output_ || last);
        const size_t start = request_.start_of(next);
        const bool wanted = request_.rows == FeatureRows::kLast ? last : i >= start;
        const size_t after = wanted && request_.rows == FeatureRows::kAll ? i - start : 0;
        row_of.push_back(wanted ? places_.first(next) + after : kNowhere);
      }
      ++next;
    }
    RowsForMeans whole(mean_ ? result_.layers.size() : 0, row_of.size(), width_);
    excluded_.assign(result_.layers.size(), {});
    const auto sink = [&](const TappedRows& tapped) {
      const auto at = std::find_if(points_.begin(), points_.end(),
                                   [&](const TapPoint& point) { return point.place() == tapped.place(); });
      const auto layer = static_cast<size_t>(at - points_.begin());
      for (size_t row = 0; row < tapped.count; ++row) {
        const auto index = static_cast<size_t>((*tapped.indices)[row]);
        const float* values = tapped.values + row * width_;
        if (mean_) {
          if (whole.add(layer, index, values)) take_means(layer, whole, first, next);
        } else if (row_of[index] != kNowhere) {
          std::copy_n(values, width_, result_.states[layer].data() + row_of[index] * width_);
        }
      }
    };
    passes_.run(batch, points_, /*leave_early=*/true, sink, cancel_);
    return next;
  }

  void take_means(size_t layer, RowsForMeans& whole, size_t first, size_t end) {
    size_t row = 0;
    for (size_t sequence = first; sequence < end; ++sequence) {
      const std::vector<llama_token>& tokens = request_.sequences[sequence];
      excluded_[layer] += mean_of_counted(whole.rows(layer, row), tokens.size(), width_,
                                          bos_tokens(passes_.info().bos, tokens), request_.start_of(sequence),
                                          result_.states[layer].data() + sequence * width_);
      row += tokens.size();
    }
    whole.release(layer);
  }

  Passes& passes_;
  const FeatureRequest& request_;
  const CancelToken& cancel_;
  const int deepest_;
  const size_t width_ = static_cast<size_t>(passes_.info().n_embd);
  const bool mean_ = request_.rows == FeatureRows::kMean;
  const RowPlaces places_{request_};
  /// The last block computes the rows only that somebody wants an output of.
  const bool every_output_ =
      !passes_.causal() || (request_.rows != FeatureRows::kLast && deepest_ == passes_.info().n_layer - 1);
  std::vector<TapPoint> points_;  // in the order of the layers
  FeatureResult result_;
  std::vector<ExcludedRows> excluded_;  // of the batch
};

}  // namespace

FeatureResult features(Passes& passes, const FeatureRequest& request, const CancelToken& cancel,
                       const CountProgress& progress) {
  const auto locked = passes.lock();
  return Features(passes, request, cancel).run(progress);
}

}  // namespace tapline
