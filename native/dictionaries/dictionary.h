#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "base/mapped_file.h"
#include "dictionaries/fired.h"
#include "dictionaries/stored_matrix.h"

namespace tapline::dictionaries {

/// What a feature's pre-activation h becomes; src/formats/dictionaries/dictionary.ts says each.
enum class Activation { kRelu, kJumpRelu, kTopK, kTopKRaw, kGated };

/// What is done to a row before it is encoded, and undone after it is decoded: nothing; lengthened to
/// sqrt(hidden); centred and divided by its standard deviation (N - 1) + 1e-5.
enum class RowScaling { kNone, kConstantNorm, kLayerNorm };

/// Where a dictionary's arrays lie in its file, in bytes from the file's start; matrices are
/// [features, hidden], everything else float32.
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
};

/// Features that fire, row by row: those of row i lie at pointers[i] ... pointers[i + 1] - 1, ascending by
/// feature. A feature of activation 0 is not listed.
struct SparseRows {
  std::vector<double> pointers;  // [rows + 1]
  std::vector<int32_t> indices;
  std::vector<float> values;
};

/// One feature of a row: its activation, and how much of its decoder row one unit of it adds to the row.
struct FeatureOfRow {
  double activation = 0;
  double unit = 1;
};

/// A sparse dictionary in a file, its weights mapped and not copied.
///
///   h = W_enc (n(x) - subtract b_dec) + b_enc,  f = activation(h),  y = n^-1(f W_dec + b_dec)
class Dictionary {
 public:
  /// Throws kInvalidArgument where an array does not lie in the file.
  explicit Dictionary(const Layout& layout);

  int hidden() const { return layout_.hidden; }
  /// The index itself; throws kInvalidArgument where there is no such feature.
  int checked_feature(int index) const;

  /// Encodes `count` rows of `hidden` floats. Sums are taken in one order, whatever the number of threads.
  /// Throws kCancelled, and kCompute where a row is not finite.
  SparseRows encode(const float* rows, size_t count, int threads, const CancelToken& cancel) const;

  /// What the dictionary makes of the rows whose features `sparse` lists: [count, hidden]. `rows` are the
  /// encoded rows, whose scaling is undone; ignored where there is none.
  std::vector<float> decode(const SparseRows& sparse, const float* rows, int threads,
                            const CancelToken& cancel) const;

  /// One feature of a row, [hidden]. Where the k most active are kept, the others are looked at too: only if
  /// it matters for use(activation) whether this one is kept, and until k more active ones are found.
  FeatureOfRow feature(const float* row, int index, const std::function<double(double)>& use) const;

 private:
  /// What a feature's product becomes before the k largest are kept; 0 where it does not fire.
  float activation(float product, int index) const;
  /// Makes a row's products of features [first, first + width) their activations. Returns a bit for each that
  /// fires, the first one's the lowest.
  uint32_t activate(float* products, int first, int width) const;
  /// The features of one row that are kept, ascending: activations lie 32 beside each other every `stride`
  /// floats, `fires` says which of 32 each are not 0.
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
};

}  // namespace tapline::dictionaries
