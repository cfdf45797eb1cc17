#include "experiment/frozen_pass.h"

#include <algorithm>
#include <functional>
#include <iomanip>
#include <sstream>
#include <utility>

#include "experiment/attention.h"
#include "experiment/checks.h"

namespace tapline {

namespace {

std::vector<double> row_of(Weight head, llama_token token) {
  head.offset += static_cast<double>(token) *
                 static_cast<double>(ggml_row_size(static_cast<ggml_type>(head.type), head.row));
  head.rows = 1;
  std::vector<double> found;
  each_dequantised(head,
                   [&](const float* values, int64_t, int64_t) { found.assign(values, values + head.row); });
  return found;
}

std::vector<double> mean_row(const Weight& head, const CancelToken& cancel) {
  std::vector<double> sums(static_cast<size_t>(head.row));
  each_dequantised(head, [&](const float* values, int64_t, int64_t count) {
    cancel.check();
    for (int64_t r = 0; r < count; ++r) {
      for (size_t k = 0; k < sums.size(); ++k)
        sums[k] += static_cast<double>(values[static_cast<size_t>(r) * sums.size() + k]);
    }
  });
  for (double& sum : sums) sum /= static_cast<double>(head.rows);
  return sums;
}

std::vector<float>& rows_at(FrozenRows& rows, Place place) {
  const auto layer = static_cast<size_t>(place.layer);
  switch (place.point) {
    case Point::kHeadOut:
      return rows.blocks[layer].heads;
    case Point::kAttnOut:
      return rows.blocks[layer].attn;
    case Point::kFfnIn:
      return rows.blocks[layer].ffn_in;
    case Point::kFfnOut:
      return rows.blocks[layer].ffn;
    case Point::kBlockOut:
      return layer + 1 < rows.blocks.size() ? rows.blocks[layer + 1].input : rows.last;
    default:
      return rows.blocks[layer].input;
  }
}

void take(Passes& passes, const TappedRows& tapped, size_t n, FrozenRows& found) {
  std::vector<float>& rows = rows_at(found, tapped.place());
  rows.resize(n * tapped.width);
  for (size_t row = 0; row < tapped.count; ++row) {
    const float* values = tapped.values + row * tapped.width;
    const auto token = static_cast<size_t>((*tapped.indices)[row]);
    if (!all_finite(values, tapped.width)) {
      passes.taint();
      throw_error(ErrorCode::kCompute, tapped.place().text(), " at token ", token,
                  " is not finite; the model file may be damaged.");
    }
    std::copy_n(values, tapped.width, rows.data() + token * tapped.width);
  }
}

}  // namespace

void check_linear_paths(const Passes& passes, bool mlps) {
  const ResidualStream& stream = passes.stream();
  if (!stream.supported) throw Error(ErrorCode::kUnsupportedArchitecture, stream.reason);
  check_causal(passes);
  check_place(passes, {0, Point::kFfnOut});
  for (const AttentionPath& path : stream.attention_paths) {
    if (!path.why.empty()) throw Error(ErrorCode::kUnsupportedArchitecture, path.why);
  }
  for (size_t layer = 0; mlps && layer < stream.mlp_paths.size(); ++layer) {
    if (!stream.mlp_paths[layer].why.empty())
      throw Error(ErrorCode::kUnsupportedArchitecture, stream.mlp_paths[layer].why);
  }
}

void check_one_pass(const Passes& passes, const std::vector<llama_token>& tokens, const char* what) {
  check_tokens(passes, tokens);
  if (tokens.size() > passes.n_batch())
    throw_error(ErrorCode::kTokenLimit, what, " needs the whole text in one pass: at most ", passes.n_batch(),
                " tokens, got ", tokens.size(), ".");
}

void check_position(int position, size_t tokens) {
  if (position < 0 || static_cast<size_t>(position) >= tokens)
    throw_error(ErrorCode::kInvalidArgument, "A target's position must be 0 to ", tokens - 1, ", got ",
                position, ".");
}

void check_logit(const Passes& passes, llama_token token, llama_token minus) {
  passes.model().check_tokens({token});
  if (minus >= 0) passes.model().check_tokens({minus});
}

FrozenRows frozen_rows(Passes& passes, const std::vector<llama_token>& tokens, bool written,
                       const CancelToken& cancel, const std::vector<int>& ffn_inputs) {
  passes.clear_memory();
  const size_t n = tokens.size();
  const auto layers = static_cast<size_t>(passes.info().n_layer);
  FrozenRows found;
  found.blocks.resize(layers);
  std::vector<TapPoint> points;
  std::vector<Point> read{Point::kHeadOut, Point::kFfnOut};
  if (!written) {
    points.push_back({0, /*read=*/true, nullptr, Point::kBlockIn});
    read = {Point::kAttention, Point::kHeadOut, Point::kAttnOut, Point::kFfnOut, Point::kBlockOut};
  }
  AttentionRequest attention;
  for (int layer = 0; static_cast<size_t>(layer) < layers; ++layer) {
    for (const Point point : read) {
      if (point == Point::kFfnOut && std::binary_search(ffn_inputs.begin(), ffn_inputs.end(), layer))
        points.push_back({layer, /*read=*/true, nullptr, Point::kFfnIn});
      points.push_back({layer, /*read=*/true, nullptr, point});
    }
    if (!written) attention.layers.push_back(layer);
  }
  AttentionReader reader(passes, attention, n);
  TokenBatch batch(n);
  for (size_t i = 0; i < n; ++i) batch.add(tokens[i], static_cast<uint32_t>(i), 0, true);
  passes.run(
      batch, std::move(points), /*leave_early=*/true,
      [&](const TappedRows& tapped) {
        if (tapped.point == Point::kAttention) return reader.take(tapped);
        take(passes, tapped, n, found);
      },
      cancel);
  std::vector<LayerAttention> weights = reader.result();
  for (size_t layer = 0; layer < weights.size(); ++layer)
    found.blocks[layer].weights = std::move(weights[layer].weights);
  return found;
}

FrozenBlocks frozen_blocks(const Passes& passes, const WeightFile& weights, const FrozenRows& rows) {
  const ResidualStream& stream = passes.stream();
  const int tokens = static_cast<int>(rows.last.size()) / passes.info().n_embd;
  return {stream.attention_paths, stream.mlp_paths, weights, rows.blocks, rows.last, tokens,
          stream.points.parallel};
}

FrozenBounds frozen_bounds(const Passes& passes, bool mlps) {
  bool quantised = false;
  const auto look = [&](const std::vector<PathStep>& steps) {
    for (const PathStep& step : steps)
      quantised = quantised || (step.weight != nullptr && ggml_is_quantized(step.weight->type));
  };
  const ResidualStream& stream = passes.stream();
  for (size_t layer = 0; layer < stream.attention_paths.size(); ++layer) {
    look(stream.attention_paths[layer].values);
    look(stream.attention_paths[layer].output);
    if (!mlps) continue;
    const MlpPath& mlp = stream.mlp_paths[layer];
    for (const auto* steps : {&mlp.input, &mlp.gate, &mlp.up, &mlp.output}) look(*steps);
  }
  const std::vector<DeviceBlocks>& devices = passes.info().devices;
  const bool exact =
      llama_model_ftype(passes.model().handle()) == LLAMA_FTYPE_ALL_F32 &&
      std::all_of(devices.begin(), devices.end(), [](const DeviceBlocks& device) { return device.host; });
  return {exact ? 1e-5 : quantised ? 0.25 : 1e-2, exact ? 1e-5 : 1e-3};
}

void check_apart(const char* half, const std::vector<double>& apart, double bound) {
  for (size_t layer = 0; layer < apart.size(); ++layer) {
    if (apart[layer] <= bound) continue;
    throw_error(ErrorCode::kCompute, "The ", half, " of block ", layer, " is ", two_digits(apart[layer]),
                " from its linear path (relative L2, at most ", two_digits(bound), ").");
  }
}

std::string two_digits(double value) {
  std::ostringstream out;
  out << std::setprecision(2) << value;
  return out.str();
}

LogitDirection LogitFunctions::of(llama_token token, llama_token minus, const std::vector<float>& last,
                                  int position) {
  const ptrdiff_t width = passes_.info().n_embd;
  const auto first = last.begin() + position * width;
  const std::vector<float> state(first, first + width);
  const LensRecipe recipe = before_cap(passes_.stream().lens);
  const Weight& head = weights_.at(head_of(recipe));
  if (minus < 0 && mean_.empty()) mean_ = mean_row(head, cancel_);
  LogitDirection found = head_direction(recipe, state, token, row_of(head, token));
  const LogitDirection other = minus < 0 ? head_direction(recipe, state, -1, mean_)
                                         : head_direction(recipe, state, minus, row_of(head, minus));
  std::transform(found.direction.begin(), found.direction.end(), other.direction.begin(),
                 found.direction.begin(), std::minus<>());
  found.constant -= other.constant;
  return found;
}

}  // namespace tapline
