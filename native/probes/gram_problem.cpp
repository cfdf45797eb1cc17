#include "probes/newton_problem.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

namespace tapline::probes {

namespace {

double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

template <class T>
class GramProblem final : public NewtonProblem {
 public:
  GramProblem(const StandardisedExamples& x, const SharedGram<T>& shared, double c, ThreadTeam* team)
      : x_(x),
        gram_(shared.gram),
        first_(shared.first),
        team_(team),
        c_(c),
        size_(static_cast<size_t>(gram_.rows())),
        from_(size_),
        to_(size_) {
    scores.assign(size_, 0.0);
    direction_scores.assign(size_, 0.0);
    for (Vector* v : {&a_, &gram_a_, &r_, &gram_r_, &u_, &da_, &gram_da_}) v->assign(size_, 0.0);
  }

  // K a loses digits even in double precision: with a large C, a is large, and most of it cancels.
  bool approximate() const override { return true; }
  double rough_gradient() const override { return sizeof(T) < sizeof(double) ? 1e-3 : 0; }

  void refresh() override {
    for (size_t i = 0; i < size_; ++i) scores[i] = gram_a_[i] + b_;
  }

  // The gradient by w is X^T r with r = residual + a / c, so its Euclidean norm is sqrt(r . K r).
  double gradient_bound(const Vector& residual) override {
    const double bias_gradient = find_r(residual);
    gram_times(r_, gram_r_);
    return std::max(std::sqrt(std::max(0.0, dot(r_, gram_r_))), std::fabs(bias_gradient));
  }

  void renew() override {
    weight_.resize(static_cast<size_t>(x_.depth()));
    x_.transposed_times(a_.data(), weight_.data(), team_);
    x_.times(weight_, gram_a_.data(), team_);
  }

  double exact_gradient(const Vector& residual) override {
    double bound = std::fabs(find_r(residual));
    Vector gradient(static_cast<size_t>(x_.depth()));
    x_.transposed_times(r_.data(), gradient.data(), team_);
    for (const double value : gradient) bound = std::max(bound, std::fabs(value));
    return bound;
  }

  // The first curvatures that are factored are always those of zero scores.
  bool factor(const Vector& curvature) override {
    if (factor_ == nullptr) {
      factor_ = &first_;
      return first_.ok();
    }
    if (!own_) own_.emplace(gram_, c_);
    factor_ = &*own_;
    return own_->factor(curvature, team_);
  }

  // Newton: (I/c + W K) da + W 1 db = -r and 1 . (a + da) = 0, with W the diagonal of curvatures and
  // (I/c + W K)^-1 v = c (v - c S B^-1 S K v),  S = W^(1/2),  B = I + c S K S (eigenvalues at least 1);
  // (I/c + W K)^-1 W 1 = c S B^-1 S 1.
  void find_direction() override {
    factor_->solve(gram_r_, u_);
    const Vector& q = factor_->solved_ones();
    double sum_au = 0;
    double sum_q = 0;
    for (size_t i = 0; i < size_; ++i) {
      u_[i] = -c_ * (r_[i] - u_[i]);
      sum_au += a_[i] + u_[i];
      sum_q += q[i];
    }
    db_ = sum_q > 0 ? sum_au / sum_q : 0.0;
    for (size_t i = 0; i < size_; ++i) da_[i] = u_[i] - q[i] * db_;
    gram_times(da_, gram_da_);
    direction_norm = dot(da_, gram_da_);
    // Not da . K a: near the minimum this and the slope of the losses cancel, so both take the same K da.
    cross = dot(a_, gram_da_);
    for (size_t i = 0; i < size_; ++i) direction_scores[i] = gram_da_[i] + db_;
  }

  // K a changes with a, without another product.
  void advance(double step) override {
    for (size_t i = 0; i < size_; ++i) {
      a_[i] += step * da_[i];
      gram_a_[i] += step * gram_da_[i];
    }
    b_ += step * db_;
  }

  Vector weight() const override { return weight_; }
  double bias() const override { return b_; }

 private:
  // Returns the gradient by the bias.
  double find_r(const Vector& residual) {
    double sum = 0;
    for (size_t i = 0; i < size_; ++i) {
      r_[i] = residual[i] + a_[i] / c_;
      sum += residual[i];
    }
    return sum;
  }

  // y = K v
  void gram_times(const Vector& v, Vector& y) {
    for (size_t i = 0; i < size_; ++i) from_[i] = static_cast<T>(v[i]);
    times(gram_, from_.data(), to_.data());
    std::copy(to_.begin(), to_.end(), y.begin());
  }

  const StandardisedExamples& x_;
  const PanelMatrix<T>& gram_;
  const GramFactor<T>& first_;
  ThreadTeam* team_;
  double c_;
  size_t size_;
  std::vector<T> from_, to_;
  std::optional<GramFactor<T>> own_;
  const GramFactor<T>* factor_ = nullptr;
  Vector a_, gram_a_, r_, gram_r_, u_, da_, gram_da_;
  Vector weight_;  // of a_ at the last renew(), which is at the end of every fit
  double b_ = 0;
  double db_ = 0;
};

}  // namespace

template <class T>
std::unique_ptr<NewtonProblem> gram_problem(const StandardisedExamples& x, const SharedGram<T>& shared,
                                            double c, ThreadTeam* team) {
  return std::make_unique<GramProblem<T>>(x, shared, c, team);
}

template std::unique_ptr<NewtonProblem> gram_problem(const StandardisedExamples&, const SharedGram<float>&,
                                                     double, ThreadTeam*);
template std::unique_ptr<NewtonProblem> gram_problem(const StandardisedExamples&, const SharedGram<double>&,
                                                     double, ThreadTeam*);

}  // namespace tapline::probes
