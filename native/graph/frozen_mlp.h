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
  /// `path` is known; `input` and `ffn` are [tokens, hidden].
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

 private:
  int tokens_;
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
