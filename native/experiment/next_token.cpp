#include "experiment/next_token.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tapline {

llama_token most_probable(const float* logits, int n_vocab) {
  // Independent lanes, which the compiler vectorises: as one chain of comparisons, ten rows of a large
  // vocabulary would take one percent of a step.
  constexpr int kLanes = 32;
  float highest[kLanes];
  int numbers[kLanes];
  std::fill_n(highest, kLanes, -std::numeric_limits<float>::infinity());
  std::fill_n(numbers, kLanes, 1);
  const auto see = [&](float logit, int lane) {
    highest[lane] = logit > highest[lane] ? logit : highest[lane];
    numbers[lane] &= logit <= std::numeric_limits<float>::max() ? 1 : 0;
  };
  int i = 0;
  for (; i + kLanes <= n_vocab; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) see(logits[i + lane], lane);
  }
  for (; i < n_vocab; ++i) see(logits[i], 0);
  const float most = *std::max_element(highest, highest + kLanes);
  if (!std::isfinite(most) || std::find(numbers, numbers + kLanes, 0) != numbers + kLanes) return -1;
  return static_cast<llama_token>(std::find(logits, logits + n_vocab, most) - logits);
}

llama_token drawn_token(const float* logits, int n_vocab, float temperature, double draw) {
  const llama_token best = most_probable(logits, n_vocab);
  if (best < 0) return best;
  const auto weight = [&](llama_token token) {
    return std::exp((double(logits[token]) - double(logits[best])) / double(temperature));
  };
  double sum = 0;
  for (llama_token token = 0; token < n_vocab; ++token) sum += weight(token);
  double left = draw * sum;
  llama_token last = best;  // with a probability above 0
  for (llama_token token = 0; token < n_vocab; ++token) {
    const double share = weight(token);
    if (share > 0) last = token;
    left -= share;
    if (left < 0) return token;
  }
  return last;
}

}  // namespace tapline
