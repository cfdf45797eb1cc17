#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "base/mapped_file.h"
#include "base/thread_team.h"
#include "dictionaries/fired.h"
#include "dictionaries/stored_matrix.h"

namespace tapline::dictionaries {

/// The activation function; src/formats/dictionaries/dictionary.ts describes each.
enum class Activation { kRelu, kJumpRelu, kTopK, kTopKRaw, kGated };

/// The scaling of a row before encoding, undone after decoding: none; to length sqrt(hidden); centred and
/// divided by its standard deviation (N - 1) + 1e-5.
enum class RowScaling { kNone, kConstantNorm, kLayerNorm };

/// The byte offsets of a dictionary's arrays in its file; matrices are [features, hidden], everything else is
/// float32.
struct Layout {
  std::string path;
  Activation activation = Activation::kRelu;
  RowScaling scaling = RowScaling::kNone;
  bool subtract_bias = false;
  int hidden = 0;
  int features = 0;
  int k = 0;
  NumberType encoder_type = NumberType::kF32, decoder_type = NumberType::kF32;
  double encoder = 0, encoder_bias = 0, decoder = 0, decoder_bias = 0;
  double threshold = 0;            // kJumpRelu
  double gain = 0, magnitude = 0;  // kGated
  /// It predicts another point's row: scaling is not undone. `skip`, [hidden, hidden] or 0, is a linear term.
  bool transcoder = false;
  double skip = 0;
  /// Blocks whose rows a cross-layer transcoder predicts parts of, from its own on; its decoder is [features,
  /// blocks, hidden].
  int blocks = 1;
};

/// Active features, row by row: those of row i are at pointers[i] ... pointers[i + 1] - 1, ascending by
/// feature, without activations of 0.
struct SparseRows {
  std::vector<double> pointers;  // [rows + 1]
  std::vector<int32_t> indices;
  std::vector<float> values;
};

/// One feature of a row: its activation, and the multiple of its decoder row that one unit adds to the row.
struct FeatureOfRow {
  double activation = 0;
  double unit = 1;
};

/// A sparse dictionary in a file, its weights mapped and not copied.
///
///   h = W_enc (n(x) - subtract b_dec) + b_enc,  f = activation(h),  y = n^-1(f W_dec + b_dec)
///
/// A transcoder's y, of another point, is f W_dec + b_dec + W_skip x.
class Dictionary {
 public:
  /// Throws kInvalidArgument if an array does not lie in the file.
  explicit Dictionary(const Layout& layout);

  int hidden() const { return layout_.hidden; }
  int blocks() const { return layout_.blocks; }
  RowScaling scaling() const { return layout_.scaling; }
  /// Returns the index; throws kInvalidArgument if there is no such feature.
  int checked_feature(int index) const;

  /// Encodes `count` rows of `hidden` floats. The order of sums does not depend on the number of threads.
  /// Throws kCancelled, and kCompute if a row is not finite.
  SparseRows encode(const float* rows, size_t count, int threads, const CancelToken& cancel) const;

  /// Reconstructs rows from their active features: [count, hidden]. `rows` are the encoded rows, needed to
  /// undo their scaling, and for a skip term. Throws kInvalidArgument for a cross-layer transcoder, whose
  /// features predict only a part of a row.
  std::vector<float> decode(const SparseRows& sparse, const float* rows, int threads,
                            const CancelToken& cancel) const;

  /// A feature's activation where it is active, as a linear function of the scaled row: writes the weights,
  /// [hidden], and returns the constant.
  double linear_feature(int index, float* weights) const;
  /// A feature's row of the decoder, [hidden]; `block` counts from the dictionary's own.
  void decoder_row(int index, int block, float* row) const;
  /// [hidden]
  const float* decoder_bias() const { return decoder_bias_; }
  /// [hidden, hidden], row i of output i; null without a skip term.
  const float* skip() const { return skip_; }

  /// One feature of a row, [hidden]. If only the k most active count, others are also computed, until k more
  /// active ones are found, but only if use(activation) depends on it.
  FeatureOfRow feature(const float* row, int index, const std::function<double(double)>& use) const;

 private:
  /// The activation of a feature's product, before the k largest are selected.
  float activation(float product, int index) const;
  /// Replaces a row's products of features [first, first + width) with activations. Returns a bit per active
  /// feature, the lowest for the first.
  uint32_t activate(float* products, int first, int width) const;
  /// Adds W_skip x to the reconstruction of each row.
  void add_skip(const float* rows, size_t count, ThreadTeam& team, const CancelToken& cancel,
                float* out) const;
  /// The selected features of one row, ascending: 32 adjacent activations every `stride` floats, with a bit
  /// in `fires` for each that is not 0.
  std::vector<Fired> active_features(const float* activations, size_t stride, const uint32_t* fires) const;

  Layout layout_;
  MappedFile file_;
  StoredMatrix encoder_;
  const float* encoder_bias_;
  StoredMatrix decoder_;
  const float* decoder_bias_;
  const float* threshold_ = nullptr;
  const float* gain_ = nullptr;
  const float* magnitude_ = nullptr;
  const float* skip_ = nullptr;
};

}  // namespace tapline::dictionaries
