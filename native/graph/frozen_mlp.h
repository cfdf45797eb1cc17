#pragma once

#include <functional>
#include <vector>

#include "base/thread_team.h"
#include "capture/mlp_path.h"
#include "graph/frozen_path.h"
#include "model/weight_file.h"

namespace tapline {

/// A block's MLP, linear in its input with the scales of its norms and its neurons' gates fixed: a neuron
/// activation(gate) * up is half of what its `up` and half of what its `gate` makes of it, and one without an
/// `up` is proportional to its input (RelP: Jafari et al., "RelP: Faithful and Efficient Circuit Discovery",
/// 2025). T is float or double.
template <class T>
class FrozenMlp {
 public:
  /// `path` is known and outlives this object, like `weights`; `input` and `ffn` are [tokens, hidden].
  FrozenMlp(const MlpPath& path, const WeightFile& weights, const std::vector<T>& input,
            const std::vector<float>& ffn, int tokens, ThreadTeam& team);

  /// How far the pass's ffn_out is from these steps, relative L2.
  double apart() const { return apart_; }
  /// [tokens, neurons].
  const std::vector<T>& neurons() const { return neurons_; }

  /// Gets, for each function, what each neuron adds to it, [tokens, neurons]; functions on several threads.
  using Take = std::function<void(int function, const T* parts)>;
  /// What linear functions of the block's output, [count, tokens, hidden], are of the MLP's input through it.
  /// Adds to `rounding`, [count, tokens], what the pass computed and these steps do not, and to `constants`,
  /// [count], what biases contribute.
  std::vector<T> pull_back(const std::vector<T>& functions, int count, double* rounding, double* constants,
                           const Take& take, ThreadTeam& team) const;

  /// One neuron at one token.
  struct Neuron {
    int token = 0;
    int index = 0;
  };
  /// Each neuron's activation as a linear function of the MLP's input at its token, [neurons, hidden], and
  /// the functions' constants.
  std::vector<T> readings(const std::vector<Neuron>& neurons, std::vector<double>& constants,
                          ThreadTeam& team) const;
  /// What each neuron adds to ffn_out at its token with the scales of norms fixed, [neurons, hidden].
  std::vector<T> writings(const std::vector<Neuron>& neurons, ThreadTeam& team) const;
  /// How ffn_out at its token changes without each neuron, norms computed again, [neurons, hidden].
  std::vector<float> losses(const std::vector<Neuron>& neurons, ThreadTeam& team) const;
  /// What all neurons add, what biases add, and what the pass computed and these steps do not; each
  /// [tokens, hidden].
  struct Written {
    std::vector<T> neurons;
    std::vector<T> constants;
    std::vector<T> rounding;
  };
  Written written(ThreadTeam& team) const;

 private:
  std::vector<T> rows_of(const std::vector<Neuron>& neurons, const std::vector<T>& factors) const;

  const MlpPath& path_;
  const WeightFile& weights_;
  int tokens_;
  FrozenPath<T> input_;
  FrozenPath<T> gate_;
  FrozenPath<T> up_;
  std::vector<T> of_gate_;  // [tokens, neurons]: what a neuron is of its gate
  std::vector<T> of_up_;    // the same of its `up`; empty without
  std::vector<T> neurons_;  // [tokens, neurons]
  FrozenPath<T> output_;
  std::vector<T> rounding_;  // [tokens, hidden]
  double apart_ = 0;
};

}  // namespace tapline
