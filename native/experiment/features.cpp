#include "experiment/features.h"

#include <algorithm>
#include <string>
#include <utility>

#include "experiment/checks.h"

namespace tapline {

namespace {

constexpr size_t kNowhere = static_cast<size_t>(-1);

/// Returns the layers, ascending.
std::vector<int> check_request(const Passes& passes, const FeatureRequest& request) {
  std::vector<int> ascending = check_layers(passes, request.layers);
  check_hidden(passes, request.point);
  if (request.target) check_hidden(passes, *request.target);
  if (ascending.empty()) throw Error(ErrorCode::kInvalidArgument, "At least one layer is needed.");
  for (size_t i = 0; i < request.sequences.size(); ++i) {
    check_tokens(passes, request.sequences[i]);
    if (request.sequences[i].size() <= passes.n_batch()) continue;
    throw_error(ErrorCode::kTokenLimit, "A sequence may have at most ", passes.n_batch(),
                " tokens; sequence ", i, " has ", request.sequences[i].size(), ".");
  }
  if (request.starts.empty()) return ascending;
  if (request.starts.size() != request.sequences.size())
    throw_error(ErrorCode::kInvalidArgument, "starts must have ", request.sequences.size(),
                " entries, one per sequence, got ", request.starts.size(), ".");
  for (size_t i = 0; i < request.starts.size(); ++i) {
    const auto length = static_cast<int64_t>(request.sequences[i].size());
    if (request.starts[i] >= 0 && request.starts[i] < length) continue;
    throw_error(ErrorCode::kInvalidArgument, "The start of sequence ", i, " must be 0 to ", length - 1,
                ", got ", request.starts[i], ".");
  }
  return ascending;
}

class Features {
 public:
  Features(Passes& passes, const FeatureRequest& request, const CancelToken& cancel)
      : passes_(passes), request_(request), cancel_(cancel), ascending_(check_request(passes, request)) {
    for (size_t i = 0; i < request.sequences.size(); ++i) {
      const bool all = request.rows == FeatureRows::kAll;
      row_of_.push_back(row_of_.back() + (all ? request.sequences[i].size() - request.start_of(i) : 1));
    }
    result_.layers = request.layers;
    for (const int layer : request.layers) places_.push_back({layer, request.point});
    if (request.target)
      for (const int layer : request.layers) places_.push_back({layer, *request.target});
    result_.states.assign(places_.size(), std::vector<float>(row_of_.back() * width_));
    result_.excluded.resize(places_.size());
    for (const Place& each : places_) {
      const Place place = each.computed_at();
      const bool twice = std::any_of(points_.begin(), points_.end(),
                                     [&](const TapPoint& point) { return point.place() == place; });
      if (twice)
        throw_error(ErrorCode::kInvalidArgument,
                    "The point and the target are the same place: ", each.text(false), ".");
      points_.push_back({place.layer, /*read=*/true, nullptr, place.point});
      computed_order_.push_back(computed_order_.size());
    }
    std::stable_sort(computed_order_.begin(), computed_order_.end(),
                     [&](size_t a, size_t b) { return places_[a].layer < places_[b].layer; });
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
      if (const std::string where = not_finite(done, next); !where.empty()) {
        // Architectures that multiply masked values by zero spread the NaN of one text to the others.
        passes_.taint();
        if (next - done == 1) throw_error(ErrorCode::kCompute, where, "; the model file may be damaged.");
        alone_until = next;
        continue;
      }
      for (size_t l = 0; l < excluded_.size(); ++l) result_.excluded[l] += excluded_[l];
      done = next;
      progress(done, total);
    }
    return std::move(result_);
  }

 private:
  /// Computes as many whole sequences from `first` as fit: few large batches are fastest. Returns the next
  /// sequence.
  size_t compute(size_t first, size_t most) {
    TokenBatch batch(passes_.n_batch());
    std::vector<size_t> target;  // by token of the batch: the row of the result, or kNowhere
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
        target.push_back(wanted ? row_of_[next] + after : kNowhere);
      }
      ++next;
    }
    // A mean needs all rows of a text, to decide which to include.
    std::vector<std::vector<float>> whole(places_.size());
    std::vector<size_t> left(places_.size(), target.size());
    excluded_.assign(places_.size(), {});
    const auto sink = [&](const TappedRows& tapped) {
      const auto at = std::find_if(points_.begin(), points_.end(),
                                   [&](const TapPoint& point) { return point.place() == tapped.place(); });
      const auto matrix = static_cast<size_t>(at - points_.begin());
      for (size_t row = 0; row < tapped.count; ++row) {
        const auto index = static_cast<size_t>((*tapped.indices)[row]);
        const float* values = tapped.values + row * width_;
        if (mean_) {
          whole[matrix].resize(target.size() * width_);
          std::copy_n(values, width_, whole[matrix].data() + index * width_);
          if (--left[matrix] == 0) take_means(matrix, std::exchange(whole[matrix], {}), first, next);
        } else if (target[index] != kNowhere) {
          std::copy_n(values, width_, result_.states[matrix].data() + target[index] * width_);
        }
      }
    };
    passes_.run(batch, points_, /*leave_early=*/true, sink, cancel_);
    return next;
  }

  void take_means(size_t matrix, const std::vector<float>& rows, size_t first, size_t end) {
    const float* row = rows.data();
    for (size_t sequence = first; sequence < end; ++sequence) {
      const std::vector<llama_token>& tokens = request_.sequences[sequence];
      excluded_[matrix] +=
          mean_of_counted(row, tokens.size(), width_, bos_tokens(passes_.info().bos, tokens),
                          request_.start_of(sequence), result_.states[matrix].data() + sequence * width_);
      row += tokens.size() * width_;
    }
  }

  /// The first non-finite row of the sequences [first, end), for a sentence; empty if there is none.
  std::string not_finite(size_t first, size_t end) const {
    for (size_t sequence = first; sequence < end; ++sequence) {
      for (const size_t matrix : computed_order_) {
        for (size_t row = row_of_[sequence]; row < row_of_[sequence + 1]; ++row) {
          const float* values = result_.states[matrix].data() + row * width_;
          if (all_finite(values, width_)) continue;
          const size_t token = request_.start_of(sequence) + row - row_of_[sequence];
          const std::string where = mean_ ? "in the mean of"
                                    : request_.rows == FeatureRows::kLast
                                        ? "at the last token of"
                                        : "at token " + std::to_string(token) + " of";
          return places_[matrix].text() + " is not finite " + where + " text " + std::to_string(sequence);
        }
      }
    }
    return {};
  }

  Passes& passes_;
  const FeatureRequest& request_;
  const CancelToken& cancel_;
  const std::vector<int> ascending_;  // layers
  const size_t width_ = static_cast<size_t>(passes_.info().n_embd);
  const bool mean_ = request_.rows == FeatureRows::kMean;
  std::vector<size_t> row_of_{0};  // by sequence: its first row in the result; then the end
  /// The last block computes only rows with outputs.
  const bool every_output_ = !passes_.causal() || (request_.rows != FeatureRows::kLast &&
                                                   ascending_.back() == passes_.info().n_layer - 1);
  std::vector<Place> places_;           // by matrix: the layers in their order, then those of the target
  std::vector<TapPoint> points_;        // the same
  std::vector<size_t> computed_order_;  // matrices by layer
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
