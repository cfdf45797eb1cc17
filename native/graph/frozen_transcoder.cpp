#include "graph/frozen_transcoder.h"

#include <algorithm>
#include <map>
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
                                      const BlockRows& rows, int tokens, int zeros, ThreadTeam& team)
    : use_(use),
      hidden_(stream.size() / static_cast<size_t>(tokens)),
      tokens_(static_cast<size_t>(tokens)),
      constants_(stream.size(), T{0}),
      errors_(rows.ffn.begin(), rows.ffn.end()) {
  if (use_ == nullptr) {
    const auto end = errors_.begin() + static_cast<ptrdiff_t>(static_cast<size_t>(zeros) * hidden_);
    std::copy(errors_.begin(), end, constants_.begin());
    std::fill(errors_.begin(), end, T{0});
    return;
  }
  const dictionaries::Dictionary dictionary(use_->layout);
  std::vector<PathStep> read = use_->reads_stream ? std::vector<PathStep>{} : steps;
  if (dictionary.skip() != nullptr)
    skip_path_ = std::make_unique<FrozenPath<T>>(read, weights, stream, tokens, team);
  if (!use_->reads_stream) {
    const FrozenPath<T> plain(read, weights, stream, tokens, team);
    std::vector<T> difference;
    apart_ = subtract(rows.ffn_in, plain.output(), difference);
  }
  if (dictionary.scaling() == dictionaries::RowScaling::kConstantNorm)
    read.push_back(constant_norm(static_cast<int>(hidden_)));
  path_ = std::make_unique<FrozenPath<T>>(read, weights, stream, tokens, team);
  read_features(dictionary);
  predict(dictionary, rows, zeros, team);
}

template <class T>
void FrozenTranscoder<T>::read_features(const dictionaries::Dictionary& dictionary) {
  std::map<int, size_t> places;
  std::vector<float> row(hidden_);
  for (size_t i = 0; i < use_->features.size(); ++i) {
    const double constant = dictionary.linear_feature(feature(i), row.data());
    const T* read = path_->output().data() + static_cast<size_t>(token(i)) * hidden_;
    activations_.push_back(constant + dot(row.data(), read, static_cast<int>(hidden_)));
    const auto [place, added] = places.emplace(feature(i), places.size());
    rows_.push_back(place->second);
    if (!added) continue;
    dictionary.decoder_row(feature(i), row.data());
    decoder_.insert(decoder_.end(), row.begin(), row.end());
  }
}

/// Splits the MLP's output.
template <class T>
void FrozenTranscoder<T>::predict(const dictionaries::Dictionary& dictionary, const BlockRows& rows,
                                  int zeros, ThreadTeam& team) {
  std::vector<double> left(rows.ffn.begin(), rows.ffn.end());
  for (size_t i = 0; i < active(); ++i) {
    double* to = left.data() + static_cast<size_t>(token(i)) * hidden_;
    for (size_t k = 0; k < hidden_; ++k) to[k] -= activations_[i] * static_cast<double>(writes(i)[k]);
  }
  if (has_skip()) {
    std::vector<T> made(errors_.size());
    const auto width = static_cast<int>(hidden_);
    FixedProduct<T>(dictionary.skip(), width, width, /*transposed=*/false, team)
        .apply(skip_path_->output().data(), static_cast<int>(tokens_), made.data(), team);
    for (size_t k = 0; k < left.size(); ++k) left[k] -= static_cast<double>(made[k]);
  }
  for (size_t token = 0; token < tokens_; ++token) {
    for (size_t k = 0; k < hidden_; ++k) {
      const size_t at = token * hidden_ + k;
      const bool zero = token < static_cast<size_t>(zeros);
      const double constant = zero ? left[at] : static_cast<double>(dictionary.decoder_bias()[k]);
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
  if (which.empty()) return found;
  const dictionaries::Dictionary dictionary(use_->layout);
  std::vector<float> row(hidden_);
  for (const size_t i : which) {
    constants.push_back(dictionary.linear_feature(feature(i), row.data()));
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
      product_(dictionaries::Dictionary(of.use_->layout).skip(), static_cast<int>(of.hidden_),
               static_cast<int>(of.hidden_), /*transposed=*/true, team) {}

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
  const dictionaries::Dictionary dictionary(use_->layout);
  std::vector<T> made(changes.size());
  const auto width = static_cast<int>(hidden_);
  FixedProduct<T>(dictionary.skip(), width, width, /*transposed=*/false, team)
      .apply(changes.data(), static_cast<int>(at.size()), made.data(), team);
  changes = std::move(made);
}

template class FrozenTranscoder<float>;
template class FrozenTranscoder<double>;

}  // namespace tapline
