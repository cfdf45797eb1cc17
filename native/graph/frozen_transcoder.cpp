#include "graph/frozen_transcoder.h"

#include <algorithm>
#include <utility>

#include "graph/difference.h"

namespace tapline {

namespace {

/// Division by the row's root mean square, as dictionaries scale rows.
PathStep constant_norm(int hidden) {
  PathStep step{};
  step.kind = PathStep::Kind::kRmsNorm;
  step.in = step.out = step.group = hidden;
  return step;
}

}  // namespace

template <class T>
FrozenTranscoder<T>::FrozenTranscoder(const TranscoderUse* use, const std::vector<PathStep>& steps,
                                      const WeightFile& weights, const std::vector<T>& stream,
                                      const BlockRows& rows, const std::vector<FrozenTranscoder>& below,
                                      int tokens, int zeros, ThreadTeam& team)
    : use_(use),
      layer_(below.size()),
      hidden_(stream.size() / static_cast<size_t>(tokens)),
      tokens_(static_cast<size_t>(tokens)),
      constants_(stream.size()),
      errors_(stream.size()) {
  if (use_ != nullptr) {
    dictionary_ = std::make_unique<dictionaries::Dictionary>(use_->layout);
    std::vector<PathStep> read = use_->reads_stream ? std::vector<PathStep>{} : steps;
    if (dictionary_->skip() != nullptr)
      skip_path_ = std::make_unique<FrozenPath<T>>(read, weights, stream, tokens, team);
    if (!use_->reads_stream) {
      const FrozenPath<T> plain(read, weights, stream, tokens, team);
      std::vector<T> difference;
      apart_ = subtract(rows.ffn_in, plain.output(), difference);
    }
    if (dictionary_->scaling() == dictionaries::RowScaling::kConstantNorm)
      read.push_back(constant_norm(static_cast<int>(hidden_)));
    path_ = std::make_unique<FrozenPath<T>>(read, weights, stream, tokens, team);
    read_features();
  }
  predict(rows, below, zeros, team);
}

template <class T>
size_t FrozenTranscoder<T>::first_at(int token) const {
  if (use_ == nullptr) return 0;
  const std::vector<int32_t>& all = use_->tokens;
  return static_cast<size_t>(std::lower_bound(all.begin(), all.end(), token) - all.begin());
}

template <class T>
bool FrozenTranscoder<T>::writes_into(size_t layer) const {
  return active() > 0 && layer >= layer_ && layer - layer_ < static_cast<size_t>(dictionary_->blocks());
}

template <class T>
void FrozenTranscoder<T>::written(size_t i, size_t layer, float* row) const {
  dictionary_->decoder_row(feature(i), static_cast<int>(layer - layer_), row);
}

template <class T>
void FrozenTranscoder<T>::read_features() {
  std::vector<float> row(hidden_);
  for (size_t i = 0; i < use_->features.size(); ++i) {
    const double constant = dictionary_->linear_feature(feature(i), row.data());
    const T* read = path_->output().data() + static_cast<size_t>(token(i)) * hidden_;
    activations_.push_back(constant + dot(row.data(), read, static_cast<int>(hidden_)));
  }
}

/// Takes what another block's features, or its own, write into this block's output out of it.
template <class T>
void FrozenTranscoder<T>::subtract_features(const FrozenTranscoder& of, std::vector<double>& left) const {
  if (!of.writes_into(layer_)) return;
  std::vector<float> row(hidden_);
  for (size_t i = 0; i < of.active(); ++i) {
    of.written(i, layer_, row.data());
    double* to = left.data() + static_cast<size_t>(of.token(i)) * hidden_;
    for (size_t k = 0; k < hidden_; ++k) to[k] -= of.activations_[i] * static_cast<double>(row[k]);
  }
}

/// Splits the MLP's output.
template <class T>
void FrozenTranscoder<T>::predict(const BlockRows& rows, const std::vector<FrozenTranscoder>& below,
                                  int zeros, ThreadTeam& team) {
  std::vector<double> left(rows.ffn.begin(), rows.ffn.end());
  for (const FrozenTranscoder& one : below) subtract_features(one, left);
  subtract_features(*this, left);
  if (has_skip()) {
    std::vector<T> made(errors_.size());
    const auto width = static_cast<int>(hidden_);
    FixedProduct<T>(dictionary_->skip(), width, width, /*transposed=*/false, team)
        .apply(skip_path_->output().data(), static_cast<int>(tokens_), made.data(), team);
    for (size_t k = 0; k < left.size(); ++k) left[k] -= static_cast<double>(made[k]);
  }
  const float* bias = use_ == nullptr ? nullptr : dictionary_->decoder_bias();
  for (size_t token = 0; token < tokens_; ++token) {
    const bool zero = token < static_cast<size_t>(zeros);
    for (size_t k = 0; k < hidden_; ++k) {
      const size_t at = token * hidden_ + k;
      const double own = bias == nullptr ? 0 : static_cast<double>(bias[k]);
      const double constant = zero ? left[at] : own;
      constants_[at] = static_cast<T>(constant);
      errors_[at] = static_cast<T>(left[at] - constant);
    }
  }
}

template <class T>
std::vector<T> FrozenTranscoder<T>::encoder_rows(const std::vector<size_t>& which,
                                                 std::vector<double>& constants) const {
  std::vector<T> found;
  constants.clear();
  std::vector<float> row(hidden_);
  for (const size_t i : which) {
    constants.push_back(dictionary_->linear_feature(feature(i), row.data()));
    found.insert(found.end(), row.begin(), row.end());
  }
  return found;
}

template <class T>
std::vector<T> FrozenTranscoder<T>::readings(const std::vector<size_t>& which, std::vector<double>& constants,
                                             ThreadTeam& team) const {
  std::vector<T> found = encoder_rows(which, constants);
  std::vector<int> at;
  for (const size_t i : which) at.push_back(token(i));
  if (!which.empty()) path_->pull_rows_back(found, at, constants.data(), team);
  return found;
}

template <class T>
FrozenTranscoder<T>::Skip::Skip(const FrozenTranscoder& of, ThreadTeam& team)
    : of_(of),
      product_(of.dictionary_->skip(), static_cast<int>(of.hidden_), static_cast<int>(of.hidden_),
               /*transposed=*/true, team) {}

template <class T>
std::vector<T> FrozenTranscoder<T>::Skip::pull_back(const std::vector<T>& functions, int count,
                                                    double* constants, ThreadTeam& team) const {
  const auto rows = static_cast<size_t>(count) * of_.tokens_;
  std::vector<T> below(rows * of_.hidden_);
  product_.apply(functions.data(), static_cast<int>(rows), below.data(), team);
  of_.skip_path_->pull_back(below, count, constants, team);
  return below;
}

template <class T>
void FrozenTranscoder<T>::push_to_features(std::vector<T>& changes, const std::vector<int>& at,
                                           const WeightFile& weights, ThreadTeam& team) const {
  path_->push(changes, at, weights, team);
}

template <class T>
void FrozenTranscoder<T>::push_through_skip(std::vector<T>& changes, const std::vector<int>& at,
                                            const WeightFile& weights, ThreadTeam& team) const {
  skip_path_->push(changes, at, weights, team);
  std::vector<T> made(changes.size());
  const auto width = static_cast<int>(hidden_);
  FixedProduct<T>(dictionary_->skip(), width, width, /*transposed=*/false, team)
      .apply(changes.data(), static_cast<int>(at.size()), made.data(), team);
  changes = std::move(made);
}

template class FrozenTranscoder<float>;
template class FrozenTranscoder<double>;

}  // namespace tapline
