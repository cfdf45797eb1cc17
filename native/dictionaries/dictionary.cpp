#include "dictionaries/dictionary.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/thread_team.h"
#include "numbers/aligned_array.h"
#include "numbers/float_panels.h"
#include "numbers/kernels.h"

namespace tapline::dictionaries {

namespace {

constexpr int kPanel = tapline::kPanel<float>;
static_assert(kPanel == 32, "a word has a bit for each feature of a strip");
/// The most rows that are encoded together: all of them use a slice of the weights while it is in the cache.
constexpr size_t kRowsAtOnce = 256;
/// Their products with all features: 32 MiB.
constexpr size_t kProductsAtOnce = size_t{8} << 20U;
/// Depth of one slice of packed weights, 32 wide: 16 KiB.
constexpr int kDepth = 128;
constexpr int kMostBlocks = 4096;

/// The scaling of a row, x' = (x - centre) / divisor, and of its reconstruction, y' * factor + centre.
struct Scale {
  float centre = 0;
  float divisor = 1;
  float factor = 1;
};

Scale scale_of(const float* row, int hidden, RowScaling scaling) {
  if (scaling == RowScaling::kNone) return {};
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < hidden; ++i) {
    sum += row[i];
    squares += static_cast<double>(row[i]) * row[i];
  }
  if (scaling == RowScaling::kConstantNorm) {
    const auto length = static_cast<float>(std::sqrt(squares / static_cast<double>(hidden)));
    return {0, length, length};
  }
  const double mean = sum / hidden;
  double spread = 0;
  for (int i = 0; i < hidden; ++i) spread += (row[i] - mean) * (row[i] - mean);
  const double deviation = hidden > 1 ? std::sqrt(spread / (hidden - 1)) : 0;
  // SAELens, the source of this scaling, undoes it without the epsilon.
  return {static_cast<float>(mean), static_cast<float>(deviation + 1e-5), static_cast<float>(deviation)};
}

/// Columns [from, from + depth) of rows [first, first + width) of the weights, transposed and padded with
/// zeros: out[k][j], depth a multiple of 32.
void pack(const Kernels& kernels, const StoredMatrix& weights, size_t first, int width, int hidden, int from,
          int depth, float* out) {
  alignas(64) float block[kPanel * kPanel];
  float buffer[kPanel];
  for (int at = 0; at < depth; at += kPanel) {
    const int count = std::clamp(hidden - from - at, 0, kPanel);
    if (width < kPanel || count < kPanel) std::fill_n(block, kPanel * kPanel, 0.0F);
    for (int j = 0; j < width && count > 0; ++j) {
      const float* row = weights.read(first + static_cast<size_t>(j), static_cast<size_t>(from + at),
                                      static_cast<size_t>(count), buffer);
      std::copy_n(row, count, block + j * kPanel);
    }
    kernels.transpose(block, out + at * kPanel);
  }
}

float dot(const Kernels& kernels, const float* a, const float* b, int count) {
  const int blocks = count / kPanel;
  float sum = kernels.dot(a, b, blocks);
  for (int i = blocks * kPanel; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

/// The position of the lowest bit that is set; at least one must be.
int lowest_bit(uint32_t bits) {
#if defined(__GNUC__)
  return __builtin_ctz(bits);
#else
  int at = 0;
  while ((bits >> at & 1U) == 0) ++at;
  return at;
#endif
}

const Layout& checked(const Layout& layout) {
  if (layout.hidden < 1 || layout.features < 1 || layout.hidden > (1 << 20) || layout.features > (1 << 26))
    throw_error(ErrorCode::kInvalidArgument, "A dictionary of ", layout.features, " features of ",
                layout.hidden, " values cannot be read.");
  if (layout.blocks < 1 || layout.blocks > kMostBlocks)
    throw_error(ErrorCode::kInvalidArgument, "A dictionary can write into 1 to ", kMostBlocks,
                " blocks, got ", layout.blocks, ".");
  return layout;
}

}  // namespace

Dictionary::Dictionary(const Layout& layout)
    : layout_(checked(layout)),
      file_(layout.path),
      encoder_(file_, layout.encoder, layout.encoder_type, static_cast<size_t>(layout.features),
               static_cast<size_t>(layout.hidden)),
      encoder_bias_(file_.floats(layout.encoder_bias, static_cast<size_t>(layout.features))),
      decoder_(file_, layout.decoder, layout.decoder_type,
               static_cast<size_t>(layout.features) * static_cast<size_t>(layout.blocks),
               static_cast<size_t>(layout.hidden)),
      decoder_bias_(file_.floats(layout.decoder_bias, static_cast<size_t>(layout.hidden))) {
  const auto features = static_cast<size_t>(layout.features);
  if (layout.activation == Activation::kJumpRelu) threshold_ = file_.floats(layout.threshold, features);
  if (layout.activation == Activation::kGated) {
    gain_ = file_.floats(layout.gain, features);
    magnitude_ = file_.floats(layout.magnitude, features);
  }
  if (layout.skip > 0)
    skip_ =
        file_.floats(layout.skip, static_cast<size_t>(layout.hidden) * static_cast<size_t>(layout.hidden));
  const bool keeps_k = layout.activation == Activation::kTopK || layout.activation == Activation::kTopKRaw;
  if (keeps_k && (layout.k < 1 || layout.k > layout.features))
    throw_error(ErrorCode::kInvalidArgument, "k must be 1 to ", layout.features, ", got ", layout.k, ".");
}

int Dictionary::checked_feature(int index) const {
  if (index >= 0 && index < layout_.features) return index;
  throw_error(ErrorCode::kInvalidArgument, "Feature ", index,
              " does not exist: the dictionary has features 0 to ", layout_.features - 1, ".");
}

SparseRows Dictionary::encode(const float* rows, size_t count, int threads, const CancelToken& cancel) const {
  const Kernels& kernels = best_kernels();
  const int hidden = layout_.hidden;
  const int features = layout_.features;
  const int padded = round_up(hidden, kPanel);
  const int strips = (features + kPanel - 1) / kPanel;
  ThreadTeam team(threads > 0 ? threads : ThreadTeam::default_size());
  for (size_t i = 0; i < count * static_cast<size_t>(hidden); ++i) {
    if (!std::isfinite(rows[i])) throw Error(ErrorCode::kCompute, "A row to encode is not finite.");
  }

  SparseRows out;
  out.pointers.push_back(0);
  const size_t at_once = std::clamp(kProductsAtOnce / static_cast<size_t>(features), size_t{16}, kRowsAtOnce);
  for (size_t first = 0; first < count; first += at_once) {
    cancel.check();
    const size_t n = std::min(at_once, count - first);
    FloatPanels packed(static_cast<int>(n), hidden);
    for (size_t row = 0; row < n; ++row) {
      const float* values = rows + (first + row) * static_cast<size_t>(hidden);
      const Scale scale = scale_of(values, hidden, layout_.scaling);
      for (int i = 0; i < hidden; ++i) {
        const float bias = layout_.subtract_bias ? decoder_bias_[i] : 0.0F;
        packed.at(static_cast<int>(row), i) = (values[i] - scale.centre) / scale.divisor - bias;
      }
    }
    // [strips][n][32]
    AlignedArray<float> products(static_cast<size_t>(strips) * n * kPanel);
    std::vector<uint32_t> fires(n * static_cast<size_t>(strips));  // [n][strips]
    team.parallel_for(strips, [&](int strip) {
      alignas(64) float slice[kDepth * kPanel];
      const int width = std::min(kPanel, features - strip * kPanel);
      const auto first_feature = static_cast<size_t>(strip) * kPanel;
      float* sums = products.data() + static_cast<size_t>(strip) * n * kPanel;
      for (int from = 0; from < padded; from += kDepth) {
        const int depth = std::min(kDepth, padded - from);
        pack(kernels, encoder_, first_feature, width, hidden, from, depth, slice);
        kernels.rows_times_panel(packed.panel(from / kPanel), packed.stride(), slice, depth / kPanel,
                                 static_cast<int>(n), sums, from > 0);
      }
      // Now, while they are in the cache.
      for (size_t row = 0; row < n; ++row) {
        fires[row * static_cast<size_t>(strips) + static_cast<size_t>(strip)] =
            activate(sums + row * kPanel, strip * kPanel, width);
      }
    });
    // Only few remain, so one thread is enough, and it may throw.
    for (size_t row = 0; row < n; ++row) {
      const std::vector<Fired> found = active_features(products.data() + row * kPanel, n * kPanel,
                                                       fires.data() + row * static_cast<size_t>(strips));
      for (const auto& [feature, value] : found) {
        out.indices.push_back(feature);
        out.values.push_back(value);
      }
      out.pointers.push_back(static_cast<double>(out.indices.size()));
    }
  }
  return out;
}

uint32_t Dictionary::activate(float* products, int first, int width) const {
  uint32_t fires = 0;
  for (int j = 0; j < width; ++j) {
    products[j] = activation(products[j], first + j);
    fires |= static_cast<uint32_t>(products[j] != 0.0F) << j;
  }
  return fires;
}

std::vector<Fired> Dictionary::active_features(const float* activations, size_t stride,
                                               const uint32_t* fires) const {
  std::vector<Fired> found;
  for (int first = 0; first < layout_.features; first += kPanel) {
    const float* values = activations + static_cast<size_t>(first / kPanel) * stride;
    for (uint32_t left = fires[first / kPanel]; left != 0; left &= left - 1) {
      const int j = lowest_bit(left);
      found.push_back({first + j, values[j]});
    }
  }
  if (layout_.k > 0) keep_largest(found, static_cast<size_t>(layout_.k));
  return found;
}

float Dictionary::activation(float product, int index) const {
  const float h = product + encoder_bias_[index];
  if (threshold_ != nullptr && !(h > threshold_[index])) return 0;
  if (gain_ != nullptr) return h > 0 ? std::max(gain_[index] * product + magnitude_[index], 0.0F) : 0.0F;
  return layout_.activation == Activation::kTopKRaw ? h : std::max(h, 0.0F);
}

FeatureOfRow Dictionary::feature(const float* row, int index,
                                 const std::function<double(double)>& use) const {
  const int hidden = layout_.hidden;
  const Scale scale = scale_of(row, hidden, layout_.scaling);
  std::vector<float> x(static_cast<size_t>(hidden));
  std::vector<float> buffer(static_cast<size_t>(hidden));
  for (int i = 0; i < hidden; ++i) {
    const float bias = layout_.subtract_bias ? decoder_bias_[i] : 0.0F;
    x[static_cast<size_t>(i)] = (row[i] - scale.centre) / scale.divisor - bias;
  }
  const Kernels& kernels = best_kernels();
  const auto value_of = [&](int feature) {
    const float* weights =
        encoder_.read(static_cast<size_t>(feature), 0, static_cast<size_t>(hidden), buffer.data());
    return activation(dot(kernels, weights, x.data(), hidden), feature);
  };
  const float value = value_of(index);
  FeatureOfRow found{value, layout_.transcoder ? 1.0 : scale.factor};
  if (layout_.k == 0 || value == 0.0F || use(value) == use(0)) return found;
  // To know whether it is one of the k largest, others must be computed; all of them if it is.
  int larger = 0;  // features that come before this one
  for (int other = 0; other < layout_.features && larger < layout_.k; ++other) {
    const float other_value = other == index ? 0.0F : value_of(other);
    if (other_value != 0.0F && (other_value > value || (other_value == value && other < index))) ++larger;
  }
  if (larger >= layout_.k) found.activation = 0;
  return found;
}

double Dictionary::linear_feature(int index, float* weights) const {
  const auto hidden = static_cast<size_t>(layout_.hidden);
  const float* row = encoder_.read(static_cast<size_t>(index), 0, hidden, weights);
  if (row != weights) std::copy_n(row, hidden, weights);
  double constant = 0;
  for (size_t i = 0; layout_.subtract_bias && i < hidden; ++i)
    constant -= static_cast<double>(weights[i]) * static_cast<double>(decoder_bias_[i]);
  if (gain_ == nullptr) return constant + static_cast<double>(encoder_bias_[index]);
  for (size_t i = 0; i < hidden; ++i) weights[i] *= gain_[index];
  return constant * static_cast<double>(gain_[index]) + static_cast<double>(magnitude_[index]);
}

void Dictionary::decoder_row(int index, int block, float* row) const {
  const auto hidden = static_cast<size_t>(layout_.hidden);
  const size_t at = static_cast<size_t>(index) * static_cast<size_t>(layout_.blocks);
  const float* found = decoder_.read(at + static_cast<size_t>(block), 0, hidden, row);
  if (found != row) std::copy_n(found, hidden, row);
}

std::vector<float> Dictionary::decode(const SparseRows& sparse, const float* rows, int threads,
                                      const CancelToken& cancel) const {
  if (layout_.blocks > 1)
    throw_error(ErrorCode::kInvalidArgument, "Features that write into ", layout_.blocks,
                " blocks do not reconstruct a row.");
  const auto hidden = static_cast<size_t>(layout_.hidden);
  const size_t count = sparse.pointers.size() - 1;
  std::vector<float> out(count * hidden);
  ThreadTeam team(threads > 0 ? threads : ThreadTeam::default_size());
  team.parallel_for(static_cast<int>(count), [&](int at) {
    if (cancel.cancelled()) return;
    std::vector<float> buffer(hidden);
    const auto row = static_cast<size_t>(at);
    float* y = out.data() + row * hidden;
    std::copy_n(decoder_bias_, hidden, y);
    for (auto i = static_cast<size_t>(sparse.pointers[row]);
         i < static_cast<size_t>(sparse.pointers[row + 1]); ++i) {
      const float value = sparse.values[i];
      const float* direction =
          decoder_.read(static_cast<size_t>(sparse.indices[i]), 0, hidden, buffer.data());
      for (size_t j = 0; j < hidden; ++j) y[j] += value * direction[j];
    }
    if (layout_.scaling == RowScaling::kNone || layout_.transcoder) return;
    const Scale scale = scale_of(rows + row * hidden, layout_.hidden, layout_.scaling);
    for (size_t j = 0; j < hidden; ++j) y[j] = y[j] * scale.factor + scale.centre;
  });
  cancel.check();
  if (skip_ != nullptr) add_skip(rows, count, team, cancel, out.data());
  return out;
}

void Dictionary::add_skip(const float* rows, size_t count, ThreadTeam& team, const CancelToken& cancel,
                          float* out) const {
  const Kernels& kernels = best_kernels();
  const auto hidden = static_cast<size_t>(layout_.hidden);
  // A slice of rows at a time, so that they stay in the cache while the matrix is read once for all of them.
  const size_t at_once = std::max(size_t{1}, (size_t{512} * 1024) / (hidden * sizeof(float)));
  for (size_t first = 0; first < count; first += at_once) {
    cancel.check();
    const size_t end = std::min(count, first + at_once);
    team.parallel_for(layout_.hidden, [&](int j) {
      const float* weights = skip_ + static_cast<size_t>(j) * hidden;
      for (size_t row = first; row < end; ++row)
        out[row * hidden + static_cast<size_t>(j)] +=
            dot(kernels, weights, rows + row * hidden, layout_.hidden);
    });
  }
}

}  // namespace tapline::dictionaries
