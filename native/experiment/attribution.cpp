#include "experiment/attribution.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iomanip>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>

#include "capture/logit_direction.h"
#include "experiment/attention.h"
#include "experiment/checks.h"

namespace tapline {

namespace {

// Of the functions that are carried through the blocks, in bytes.
constexpr size_t kMostBytes = size_t{2} << 30;

/// Two digits, for a sentence.
std::string digits(double value) {
  std::ostringstream out;
  out << std::setprecision(2) << value;
  return out.str();
}

class Run {
 public:
  Run(Passes& passes, const AttributionRequest& request, const CancelToken& cancel)
      : passes_(passes), request_(request), cancel_(cancel), n_(request.tokens.size()) {
    check();
    rows_.tokens = static_cast<int>(n_);
    rows_.neurons = request.neurons;
    rows_.parallel = passes.stream().points.parallel;
    rows_.precise = request.precise;
  }

  Attribution run(const CountProgress& progress) {
    const Passes::ClearAtEnd clear{passes_};
    if (!request_.other.empty()) {
      compute(request_.other);
      rows_.others = std::move(rows_.blocks);
    }
    compute(request_.tokens);
    const WeightFile weights(passes_.model());
    rows_.functions = functions_of(weights);
    const ResidualStream& stream = passes_.stream();
    ThreadTeam team(passes_.n_threads());
    Attribution found;
    found.pass =
        linear_pass(stream.attention_paths, stream.mlp_paths, weights, rows_, team, cancel_, progress);
    set_bounds(found);
    check(found);
    return found;
  }

 private:
  /// The pass rounds where it has 16 bits, and products with quantised weights round their inputs, too; a
  /// wrong path would be about 1 away.
  void set_bounds(Attribution& found) const {
    bool quantised = false;
    const auto look = [&](const std::vector<PathStep>& steps) {
      for (const PathStep& step : steps)
        quantised = quantised || (step.weight != nullptr && ggml_is_quantized(step.weight->type));
    };
    const ResidualStream& stream = passes_.stream();
    for (size_t layer = 0; layer < stream.attention_paths.size(); ++layer) {
      look(stream.attention_paths[layer].values);
      look(stream.attention_paths[layer].output);
      if (request_.neurons > 0) look(stream.mlp_paths[layer].output);
    }
    const std::vector<DeviceBlocks>& devices = passes_.info().devices;
    const bool exact =
        llama_model_ftype(passes_.model().handle()) == LLAMA_FTYPE_ALL_F32 &&
        std::all_of(devices.begin(), devices.end(), [](const DeviceBlocks& device) { return device.host; });
    found.apart_bound = exact ? 1e-5 : quantised ? 0.25 : 1e-2;
    found.residual_bound = exact ? 1e-5 : 1e-3;
  }

  static void check(const Attribution& found) {
    const auto check_half = [&](const char* half, const std::vector<double>& apart) {
      for (size_t layer = 0; layer < apart.size(); ++layer) {
        if (apart[layer] <= found.apart_bound) continue;
        throw_error(ErrorCode::kCompute, "The ", half, " of block ", layer, " is ", digits(apart[layer]),
                    " from its linear path (relative L2, at most ", digits(found.apart_bound), ").");
      }
    };
    check_half("attention", found.pass.apart);
    check_half("MLP", found.pass.ffn_apart);
    for (size_t i = 0; i < found.pass.functions.size(); ++i) {
      const StreamParts& parts = found.pass.functions[i];
      if (parts.residual <= found.residual_bound) continue;
      throw_error(ErrorCode::kCompute, "The parts of target ", i, " do not add up to its value of ",
                  digits(parts.value), ": the relative difference is ", digits(parts.residual), ", at most ",
                  digits(found.residual_bound), ".");
    }
  }

  void check() const {
    const ResidualStream& stream = passes_.stream();
    if (!stream.supported) throw Error(ErrorCode::kUnsupportedArchitecture, stream.reason);
    check_causal(passes_);
    check_tokens(passes_, request_.tokens);
    if (!request_.other.empty()) check_tokens(passes_, request_.other);
    if (!request_.other.empty() && request_.other.size() != n_)
      throw_error(ErrorCode::kInvalidArgument, "The other text must have the same number of tokens, ", n_,
                  ", got ", request_.other.size(), ".");
    if (n_ > passes_.n_batch())
      throw_error(ErrorCode::kTokenLimit, "Attribution needs the whole text in one pass: at most ",
                  passes_.n_batch(), " tokens, got ", n_, ".");
    if (request_.targets.empty()) throw Error(ErrorCode::kInvalidArgument, "At least one target is needed.");
    const size_t bytes =
        request_.targets.size() * n_ * width() * (request_.precise ? 8 : 4) *
        (request_.neurons > 0 ? 8 : 1);  // a block has more neurons than the stream has numbers
    if (bytes > kMostBytes)
      throw_error(ErrorCode::kInvalidArgument, request_.targets.size(), " targets of ", n_,
                  " tokens are too many for one call; divide them.");
    check_place(passes_, {0, Point::kFfnOut});
    for (const AttentionPath& path : stream.attention_paths) {
      if (!path.why.empty()) throw Error(ErrorCode::kUnsupportedArchitecture, path.why);
    }
    for (size_t layer = 0; request_.neurons > 0 && layer < stream.mlp_paths.size(); ++layer) {
      if (!stream.mlp_paths[layer].why.empty())
        throw Error(ErrorCode::kUnsupportedArchitecture, stream.mlp_paths[layer].why);
    }
    for (const AttributionTarget& target : request_.targets) check(target);
  }

  void check(const AttributionTarget& target) const {
    if (target.position < 0 || static_cast<size_t>(target.position) >= n_)
      throw_error(ErrorCode::kInvalidArgument, "A target's position must be 0 to ", n_ - 1, ", got ",
                  target.position, ".");
    if (target.direction.empty()) {
      passes_.model().check_tokens({target.token});
      if (target.minus >= 0) passes_.model().check_tokens({target.minus});
      return;
    }
    passes_.model().check_layer(target.place.layer);
    check_place(passes_, target.place);
    const Point point = target.place.point;
    if (point != Point::kBlockIn && point != Point::kMid && point != Point::kBlockOut)
      throw_error(ErrorCode::kInvalidArgument, "A target reads block_in, mid or block_out, got ",
                  name_of(point), ".");
    if (target.direction.size() != width())
      throw_error(ErrorCode::kInvalidArgument, "A target's direction must have ", width(), " values, got ",
                  target.direction.size(), ".");
  }

  size_t width() const { return static_cast<size_t>(passes_.info().n_embd); }

  /// The rows of every block, from one pass.
  void compute(const std::vector<llama_token>& tokens) {
    passes_.clear_memory();
    const auto layers = static_cast<size_t>(passes_.info().n_layer);
    std::vector<TapPoint> points{{0, /*read=*/true, nullptr, Point::kBlockIn}};
    AttentionRequest attention;
    rows_.blocks.resize(layers);
    for (int layer = 0; static_cast<size_t>(layer) < layers; ++layer) {
      for (const Point point :
           {Point::kAttention, Point::kHeadOut, Point::kAttnOut, Point::kFfnOut, Point::kBlockOut})
        points.push_back({layer, /*read=*/true, nullptr, point});
      attention.layers.push_back(layer);
    }
    AttentionReader reader(passes_, attention, n_);
    TokenBatch batch(n_);
    for (size_t i = 0; i < n_; ++i) batch.add(tokens[i], static_cast<uint32_t>(i), 0, true);
    passes_.run(
        batch, std::move(points), /*leave_early=*/true,
        [&](const TappedRows& tapped) {
          if (tapped.point == Point::kAttention) return reader.take(tapped);
          take(tapped);
        },
        cancel_);
    std::vector<LayerAttention> read = reader.result();
    for (size_t layer = 0; layer < layers; ++layer)
      rows_.blocks[layer].weights = std::move(read[layer].weights);
  }

  void take(const TappedRows& tapped) {
    std::vector<float>& rows = rows_at(tapped.place());
    rows.resize(n_ * tapped.width);
    for (size_t row = 0; row < tapped.count; ++row) {
      const float* values = tapped.values + row * tapped.width;
      const auto token = static_cast<size_t>((*tapped.indices)[row]);
      if (!all_finite(values, tapped.width)) {
        passes_.taint();
        throw_error(ErrorCode::kCompute, tapped.place().text(), " at token ", token,
                    " is not finite; the model file may be damaged.");
      }
      std::copy_n(values, tapped.width, rows.data() + token * tapped.width);
    }
  }

  std::vector<float>& rows_at(Place place) {
    const auto layer = static_cast<size_t>(place.layer);
    switch (place.point) {
      case Point::kHeadOut:
        return rows_.blocks[layer].heads;
      case Point::kAttnOut:
        return rows_.blocks[layer].attn;
      case Point::kFfnOut:
        return rows_.blocks[layer].ffn;
      case Point::kBlockOut:
        return layer + 1 < rows_.blocks.size() ? rows_.blocks[layer + 1].input : rows_.last;
      default:
        return rows_.blocks[layer].input;
    }
  }

  std::vector<StreamFunction> functions_of(const WeightFile& weights) const {
    const LensRecipe recipe = before_cap(passes_.stream().lens);
    std::vector<double> mean;
    std::vector<StreamFunction> functions;
    for (const AttributionTarget& target : request_.targets) {
      if (!target.direction.empty()) {
        functions.push_back({target.place,
                             target.position,
                             {target.direction.begin(), target.direction.end()},
                             target.constant});
        continue;
      }
      const ggml_tensor* head = head_of(recipe);
      const auto first =
          rows_.last.begin() + static_cast<ptrdiff_t>(static_cast<size_t>(target.position) * width());
      const std::vector<float> state(first, first + static_cast<ptrdiff_t>(width()));
      if (target.minus < 0 && mean.empty()) mean = mean_row(weights.at(head));
      const LogitDirection found =
          head_direction(recipe, state, target.token, row(weights.at(head), target.token));
      const LogitDirection other =
          target.minus < 0 ? head_direction(recipe, state, -1, mean)
                           : head_direction(recipe, state, target.minus, row(weights.at(head), target.minus));
      StreamFunction function{{passes_.info().n_layer - 1, Point::kBlockOut}, target.position, {}, 0};
      std::transform(found.direction.begin(), found.direction.end(), other.direction.begin(),
                     std::back_inserter(function.direction), std::minus<>());
      function.constant = found.constant - other.constant;
      functions.push_back(std::move(function));
    }
    return functions;
  }

  static std::vector<double> row(Weight head, llama_token token) {
    head.offset += static_cast<double>(token) *
                   static_cast<double>(ggml_row_size(static_cast<ggml_type>(head.type), head.row));
    head.rows = 1;
    std::vector<double> found;
    each_dequantised(head,
                     [&](const float* values, int64_t, int64_t) { found.assign(values, values + head.row); });
    return found;
  }

  std::vector<double> mean_row(const Weight& head) const {
    std::vector<double> sums(static_cast<size_t>(head.row));
    each_dequantised(head, [&](const float* values, int64_t, int64_t count) {
      cancel_.check();
      for (int64_t r = 0; r < count; ++r) {
        for (size_t k = 0; k < sums.size(); ++k)
          sums[k] += static_cast<double>(values[static_cast<size_t>(r) * sums.size() + k]);
      }
    });
    for (double& sum : sums) sum /= static_cast<double>(head.rows);
    return sums;
  }

  Passes& passes_;
  const AttributionRequest& request_;
  const CancelToken& cancel_;
  size_t n_;
  LinearPassRequest rows_;
};

}  // namespace

Attribution attribution(Passes& passes, const AttributionRequest& request, const CancelToken& cancel,
                        const CountProgress& progress) {
  const auto locked = passes.lock();
  return Run(passes, request, cancel).run(progress);
}

}  // namespace tapline
