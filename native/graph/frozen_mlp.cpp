#include "graph/frozen_mlp.h"

#include <cmath>
#include <numeric>
#include <utility>

#include "graph/difference.h"

namespace tapline {

namespace {

/// activation(x) / x, or its limit at 0.
double slope(Activation activation, double x) {
  constexpr double kRootTwo = 1.4142135623730951;
  constexpr double kRootTwoOverPi = 0.7978845608028654;
  switch (activation) {
    case Activation::kRelu:
      return x > 0 ? 1 : 0;
    case Activation::kReluSquared:
      return x > 0 ? x : 0;
    case Activation::kSilu:
      return 1 / (1 + std::exp(-x));
    case Activation::kGelu:
      return (1 + std::tanh(kRootTwoOverPi * (x + 0.044715 * x * x * x))) / 2;
    case Activation::kGeluErf:
      return (1 + std::erf(x / kRootTwo)) / 2;
    case Activation::kGeluQuick:
      return 1 / (1 + std::exp(-1.702 * x));
  }
  return 0;
}

template <class Neuron>
std::vector<int> tokens_of(const std::vector<Neuron>& neurons) {
  std::vector<int> tokens;
  for (const Neuron& neuron : neurons) tokens.push_back(neuron.token);
  return tokens;
}

/// The neurons, and the factors that they are of their gates and ups.
template <class T>
std::vector<T> activate(const MlpPath& path, const std::vector<T>& gate, const std::vector<T>& up,
                        std::vector<T>& of_gate, std::vector<T>& of_up) {
  std::vector<T> neurons;
  for (size_t k = 0; k < gate.size(); ++k) {
    const auto x = static_cast<double>(gate[k]);
    const double factor = slope(path.activation, x);
    const double other = path.gated ? static_cast<double>(up[k]) : 1;
    neurons.push_back(static_cast<T>(x * factor * other));
    of_gate.push_back(static_cast<T>(path.gated ? factor * other / 2 : factor));
    if (path.gated) of_up.push_back(static_cast<T>(x * factor / 2));
  }
  return neurons;
}

}  // namespace

template <class T>
FrozenMlp<T>::FrozenMlp(const MlpPath& path, const WeightFile& weights, const std::vector<T>& input,
                        const std::vector<float>& ffn, int tokens, ThreadTeam& team)
    : path_(path),
      weights_(weights),
      tokens_(tokens),
      input_(path.input, weights, input, tokens, team),
      gate_(path.gate, weights, input_.output(), tokens, team),
      up_(path.up, weights, path.gated ? input_.output() : std::vector<T>{}, tokens, team),
      neurons_(activate(path, gate_.output(), up_.output(), of_gate_, of_up_)),
      output_(path.output, weights, neurons_, tokens, team),
      apart_(subtract(ffn, output_.output(), rounding_)) {}

template <class T>
std::vector<T> FrozenMlp<T>::pull_back(const std::vector<T>& functions, int count, double* rounding,
                                       double* constants, const Take& take, ThreadTeam& team) const {
  const size_t each = rounding_.size();
  const auto hidden = static_cast<int>(each) / tokens_;
  std::vector<T> written(functions.begin(),
                         functions.begin() + static_cast<ptrdiff_t>(static_cast<size_t>(count) * each));
  team.parallel_for(count * tokens_, [&](int row) {
    const T* there = rounding_.data() + static_cast<ptrdiff_t>(row % tokens_) * hidden;
    rounding[row] += dot(written.data() + static_cast<ptrdiff_t>(row) * hidden, there, hidden);
  });
  output_.pull_back(written, count, constants, team);
  const size_t inner = neurons_.size();
  std::vector<T> up(of_up_.empty() ? 0 : written.size());
  team.parallel_for(count, [&](int one) {
    T* from = written.data() + static_cast<size_t>(one) * inner;
    T* other = up.data() + (up.empty() ? 0 : static_cast<size_t>(one) * inner);
    std::vector<T> parts(inner);
    for (size_t k = 0; k < inner; ++k) {
      parts[k] = from[k] * neurons_[k];
      if (!up.empty()) other[k] = from[k] * of_up_[k];
      from[k] *= of_gate_[k];
    }
    take(one, parts.data());
  });
  gate_.pull_back(written, count, constants, team);
  if (!up.empty()) {
    up_.pull_back(up, count, constants, team);
    for (size_t k = 0; k < written.size(); ++k) written[k] += up[k];
  }
  input_.pull_back(written, count, constants, team);
  return written;
}

/// One row per neuron, zero but for the neuron's factor, which is one of [tokens, neurons].
template <class T>
std::vector<T> FrozenMlp<T>::rows_of(const std::vector<Neuron>& neurons,
                                     const std::vector<T>& factors) const {
  const size_t width = neurons_.size() / static_cast<size_t>(tokens_);
  std::vector<T> rows(neurons.size() * width, T{0});
  for (size_t i = 0; i < neurons.size(); ++i) {
    const auto index = static_cast<size_t>(neurons[i].index);
    rows[i * width + index] = factors[static_cast<size_t>(neurons[i].token) * width + index];
  }
  return rows;
}

template <class T>
std::vector<T> FrozenMlp<T>::readings(const std::vector<Neuron>& neurons, std::vector<double>& constants,
                                      ThreadTeam& team) const {
  const std::vector<int> tokens = tokens_of(neurons);
  constants.assign(neurons.size(), 0.0);
  std::vector<T> functions = rows_of(neurons, of_gate_);
  gate_.pull_rows_back(functions, tokens, constants.data(), team);
  if (!of_up_.empty()) {
    std::vector<T> up = rows_of(neurons, of_up_);
    up_.pull_rows_back(up, tokens, constants.data(), team);
    for (size_t k = 0; k < functions.size(); ++k) functions[k] += up[k];
  }
  input_.pull_rows_back(functions, tokens, constants.data(), team);
  return functions;
}

template <class T>
std::vector<T> FrozenMlp<T>::writings(const std::vector<Neuron>& neurons, ThreadTeam& team) const {
  std::vector<T> rows = rows_of(neurons, neurons_);
  output_.push(rows, tokens_of(neurons), weights_, team);
  return rows;
}

template <class T>
std::vector<float> FrozenMlp<T>::losses(const std::vector<Neuron>& neurons, ThreadTeam& team) const {
  const size_t width = neurons_.size() / static_cast<size_t>(tokens_);
  std::vector<T> rows;
  rows.reserve(neurons.size() * width);
  for (const Neuron& neuron : neurons) {
    const auto from = neurons_.begin() + static_cast<ptrdiff_t>(static_cast<size_t>(neuron.token) * width);
    rows.insert(rows.end(), from, from + static_cast<ptrdiff_t>(width));
    rows[rows.size() - width + static_cast<size_t>(neuron.index)] = T{0};
  }
  const FrozenPath<T> without(path_.output, weights_, std::move(rows), static_cast<int>(neurons.size()),
                              team);
  const size_t hidden = rounding_.size() / static_cast<size_t>(tokens_);
  std::vector<float> changes;
  changes.reserve(neurons.size() * hidden);
  for (size_t i = 0; i < neurons.size(); ++i) {
    const size_t at = static_cast<size_t>(neurons[i].token) * hidden;
    for (size_t k = 0; k < hidden; ++k)
      changes.push_back(static_cast<float>(without.output()[i * hidden + k] - output_.output()[at + k]));
  }
  return changes;
}

template <class T>
typename FrozenMlp<T>::Written FrozenMlp<T>::written(ThreadTeam& team) const {
  Written found{neurons_, output_.output(), rounding_};
  std::vector<int> tokens(static_cast<size_t>(tokens_));
  std::iota(tokens.begin(), tokens.end(), 0);
  output_.push(found.neurons, tokens, weights_, team);
  for (size_t k = 0; k < found.constants.size(); ++k) found.constants[k] -= found.neurons[k];
  return found;
}

template class FrozenMlp<float>;
template class FrozenMlp<double>;

}  // namespace tapline
