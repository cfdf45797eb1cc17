#include "probes/newton_problem.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace tapline::probes {

namespace {

class WeightProblem final : public NewtonProblem {
 public:
  WeightProblem(const PanelMatrix<double>& x, double c, ThreadTeam* team)
      : x_(x),
        team_(team),
        c_(c),
        dimensions_(static_cast<size_t>(x.depth())),
        system_(round_up(x.depth() + 1, PanelMatrix<double>::kWidth),
                round_up(x.depth() + 1, PanelMatrix<double>::kWidth)) {
    const size_t examples = static_cast<size_t>(x.padded());
    scores.assign(examples, 0.0);
    direction_scores.assign(examples, 0.0);
    w_.assign(dimensions_, 0.0);
    gradient_.assign(dimensions_ + 1, 0.0);
    direction_.assign(static_cast<size_t>(system_.rows()), 0.0);
  }

  void refresh() override {
    times(x_, w_.data(), scores.data());
    for (double& score : scores) score += b_;
  }

  double gradient_bound(const Vector& residual) override {
    transposed_times(x_, residual.data(), gradient_.data());
    gradient_[dimensions_] = 0;
    for (const double value : residual) gradient_[dimensions_] += value;
    double bound = std::fabs(gradient_[dimensions_]);
    for (size_t k = 0; k < dimensions_; ++k) {
      gradient_[k] += w_[k] / c_;
      bound = std::max(bound, std::fabs(gradient_[k]));
    }
    return bound;
  }

  bool factor(const Vector& curvature) override {
    constexpr int kWidth = PanelMatrix<double>::kWidth;
    roots_.resize(static_cast<size_t>(x_.rows()));
    for (size_t i = 0; i < roots_.size(); ++i) roots_[i] = std::sqrt(curvature[i]);
    // y y^T, where y's rows are dimensions (the last one the constant 1 of the bias) and its columns examples
    // times the root of their curvature: made slice by slice, for there may be many examples.
    const auto fill = [&](int panel, int from, int count, double* to) {
      const int dimensions = std::min(kWidth, x_.depth() - panel * kWidth);
      for (int i = from; i < from + count; ++i, to += kWidth) {
        const double s = roots_[static_cast<size_t>(i)];
        const double* x = x_.panel(i / kWidth) + i % kWidth;
        for (int k = 0; k < dimensions; ++k) to[k] = s * x[static_cast<size_t>(panel * kWidth + k) * kWidth];
        for (int k = dimensions; k < kWidth; ++k) to[k] = k == dimensions ? s : 0;
      }
    };
    gram_lower<double>(x_.depth() + 1, x_.rows(), fill, system_);
    for (int k = 0; k < system_.rows(); ++k) {
      if (k < x_.depth()) {
        system_.at(k, k) += 1.0 / c_;
      } else {
        // The bias has no penalty: where all curvatures vanish, a trace of one keeps the step finite.
        system_.at(k, k) += k == x_.depth() ? 1e-12 : 1.0;
      }
    }
    cholesky_.emplace(system_, team_);
    return cholesky_->ok();
  }

  void find_direction() override {
    std::fill(direction_.begin(), direction_.end(), 0.0);
    for (size_t k = 0; k <= dimensions_; ++k) direction_[k] = -gradient_[k];
    cholesky_->solve(direction_.data());
    times(x_, direction_.data(), direction_scores.data());
    for (double& score : direction_scores) score += direction_[dimensions_];
    cross = 0;
    direction_norm = 0;
    for (size_t k = 0; k < dimensions_; ++k) {
      cross += w_[k] * direction_[k];
      direction_norm += direction_[k] * direction_[k];
    }
  }

  void advance(double step) override {
    for (size_t k = 0; k < dimensions_; ++k) w_[k] += step * direction_[k];
    b_ += step * direction_[dimensions_];
  }

  Vector weight() const override { return w_; }
  double bias() const override { return b_; }

 private:
  const PanelMatrix<double>& x_;
  ThreadTeam* team_;
  double c_;
  size_t dimensions_;
  Vector roots_;  // of the curvatures
  PanelMatrix<double> system_;
  std::optional<Cholesky<double>> cholesky_;
  Vector w_, gradient_, direction_;
  double b_ = 0;
};

}  // namespace

std::unique_ptr<NewtonProblem> weight_problem(const PanelMatrix<double>& x, double c, ThreadTeam* team) {
  return std::make_unique<WeightProblem>(x, c, team);
}

}  // namespace tapline::probes
