#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "numbers/linear_algebra.h"
#include "probes/standardised.h"

namespace tapline::probes {

/// B = I + c S K S at some curvatures, factored; S is the diagonal of their square roots.
template <class T>
class GramFactor {
 public:
  GramFactor(const PanelMatrix<T>& gram, double c)
      : gram_(gram), c_(c), root_(static_cast<size_t>(gram.rows())), system_(gram.rows(), gram.rows()) {}

  /// Returns false if B does not factor.
  bool factor(const std::vector<double>& curvature, ThreadTeam* team) {
    constexpr int kWidth = PanelMatrix<T>::kWidth;
    for (size_t i = 0; i < root_.size(); ++i) root_[i] = static_cast<T>(std::sqrt(curvature[i]));
    for (int p = 0; p < system_.panels(); ++p) {
      T* to = system_.panel(p);
      T scaled[kWidth];
      for (int i = 0; i < kWidth; ++i) {
        scaled[i] = static_cast<T>(c_) * root_[static_cast<size_t>(p * kWidth + i)];
      }
      panel_kernels<T>().scale(gram_.panel(p), scaled, root_.data(), (p + 1) * kWidth, to);
      for (int i = 0; i < kWidth; ++i) to[(p * kWidth + i) * kWidth + i] += 1;
    }
    cholesky_.emplace(system_, team);
    if (!cholesky_->ok()) return false;
    ones_.assign(root_.size(), 0.0);
    solve(std::vector<double>(root_.size(), 1.0), ones_);
    return true;
  }

  bool ok() const { return cholesky_ && cholesky_->ok(); }

  /// y = c S B^-1 S v
  void solve(const std::vector<double>& v, std::vector<double>& y) const {
    std::vector<T> scaled(root_.size());
    for (size_t i = 0; i < root_.size(); ++i) scaled[i] = root_[i] * static_cast<T>(v[i]);
    cholesky_->solve(scaled.data());
    for (size_t i = 0; i < root_.size(); ++i) y[i] = c_ * static_cast<double>(root_[i] * scaled[i]);
  }

  /// The same for a vector of ones.
  const std::vector<double>& solved_ones() const { return ones_; }

 private:
  const PanelMatrix<T>& gram_;
  double c_;
  std::vector<T> root_;
  PanelMatrix<T> system_;
  std::optional<Cholesky<T>> cholesky_;
  std::vector<double> ones_;
};

/// Shared by all labellings of the same examples.
template <class T>
struct SharedGram {
  SharedGram(const StandardisedExamples& x, double c, ThreadTeam& team)
      : gram(tapline::gram<T>(
            x.rows(), x.depth(),
            [&](int panel, int from, int count, T* to) { x.fill(panel, from, count, to); }, team)),
        first(gram, c) {
    std::vector<double> curvature(static_cast<size_t>(gram.rows()), 0.0);
    std::fill_n(curvature.begin(), x.rows(), 0.25);
    first.factor(curvature, &team);
  }

  PanelMatrix<T> gram;
  GramFactor<T> first;  ///< at scores of zero, where every fit begins: curvatures of 1/4, and 0 for padding
};

}  // namespace tapline::probes
