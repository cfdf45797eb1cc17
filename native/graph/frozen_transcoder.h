#pragma once

#include <memory>
#include <vector>

#include "base/thread_team.h"
#include "capture/path_steps.h"
#include "dictionaries/dictionary.h"
#include "graph/frozen_attention.h"
#include "graph/frozen_path.h"
#include "model/weight_file.h"

namespace tapline {

/// A block's transcoder and the features that are active in one pass.
struct TranscoderUse {
  dictionaries::Layout layout;
  bool reads_stream = false;  // mid; otherwise ffn_in
  // By active feature, ascending by token.
  std::vector<int32_t> tokens;
  std::vector<int32_t> features;
};

/// A block's MLP output in one pass as what active features of transcoders write, a linear term, constants
/// and an error per token. T is float or double.
template <class T>
class FrozenTranscoder {
 public:
  /// `below` are of all lower blocks: rows that cross-layer features of these write here count as predicted.
  /// Without `use`, all the rest is an error. `steps` lead from the stream, `stream` [tokens, hidden], to
  /// ffn_in. At the first `zeros` tokens, the output is constant.
  FrozenTranscoder(const TranscoderUse* use, const std::vector<PathStep>& steps, const WeightFile& weights,
                   const std::vector<T>& stream, const BlockRows& rows,
                   const std::vector<FrozenTranscoder>& below, int tokens, int zeros, ThreadTeam& team);

  size_t active() const { return activations_.size(); }
  int token(size_t i) const { return use_->tokens[i]; }
  int feature(size_t i) const { return use_->features[i]; }
  /// By active feature, from the stream.
  const std::vector<double>& activations() const { return activations_; }
  /// The first active feature at a token or a later one.
  size_t first_at(int token) const;
  /// Whether active features write into a block's output: this one's or, across layers, a later one's.
  bool writes_into(size_t layer) const;
  /// The row that an active feature writes there per unit of its activation, [hidden], read from the file.
  void written(size_t i, size_t layer, float* row) const;
  const std::vector<T>& constants() const { return constants_; }  // [tokens, hidden]
  const std::vector<T>& errors() const { return errors_; }        // [tokens, hidden]
  /// How far ffn_in is from the steps, relative L2; 0 if it is not read.
  double apart() const { return apart_; }
  bool has_skip() const { return skip_path_ != nullptr; }

  /// Some active features' weights on what they read, [count, hidden].
  std::vector<T> encoder_rows(const std::vector<size_t>& which, std::vector<double>& constants) const;
  /// Their activations as linear functions of the stream at their tokens, and the functions' constants.
  std::vector<T> readings(const std::vector<size_t>& which, std::vector<double>& constants,
                          ThreadTeam& team) const;
  /// The linear term, for many functions of the block's output.
  class Skip {
   public:
    Skip(const FrozenTranscoder& of, ThreadTeam& team);
    /// Functions of the stream that equal, through the linear term, those of the block's output, [count,
    /// tokens, hidden].
    std::vector<T> pull_back(const std::vector<T>& functions, int count, double* constants,
                             ThreadTeam& team) const;

   private:
    const FrozenTranscoder& of_;
    FixedProduct<T> product_;
  };
  /// What changes of the stream, [rows, hidden], at tokens `at`, make of what features read.
  void push_to_features(std::vector<T>& changes, const std::vector<int>& at, const WeightFile& weights,
                        ThreadTeam& team) const;
  /// And of the linear term.
  void push_through_skip(std::vector<T>& changes, const std::vector<int>& at, const WeightFile& weights,
                         ThreadTeam& team) const;

 private:
  void read_features();
  void subtract_features(const FrozenTranscoder& of, std::vector<double>& left) const;
  void predict(const BlockRows& rows, const std::vector<FrozenTranscoder>& below, int zeros,
               ThreadTeam& team);

  const TranscoderUse* use_;
  std::unique_ptr<dictionaries::Dictionary> dictionary_;
  size_t layer_;
  size_t hidden_;
  size_t tokens_;
  std::unique_ptr<FrozenPath<T>> path_;       // to what features read
  std::unique_ptr<FrozenPath<T>> skip_path_;  // to what the linear term reads
  std::vector<double> activations_;
  std::vector<T> constants_;
  std::vector<T> errors_;
  double apart_ = 0;
};

}  // namespace tapline
