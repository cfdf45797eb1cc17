#include "base/counted_rows.h"

#include <algorithm>
#include <cmath>

namespace tapline {

namespace {

/// Activations of attention sinks are 30 to 1000 times longer than others; those of ordinary tokens vary by
/// less than a factor of 3.
constexpr double kLongest = 10;

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 != 0) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

}  // namespace

size_t bos_tokens(int32_t bos, const std::vector<int32_t>& tokens) {
  return tokens.size() > 1 && tokens.front() == bos ? 1 : 0;
}

std::vector<uint8_t> counted_rows(const std::vector<double>& norms, size_t bos) {
  std::vector<uint8_t> counted(norms.size());
  if (bos >= norms.size()) return counted;
  if (!std::all_of(norms.begin(), norms.end(), [](double norm) { return std::isfinite(norm); })) {
    counted.assign(norms.size(), 1);  // a non-finite activation must show in the result
    return counted;
  }
  const double most = kLongest * median({norms.begin() + static_cast<std::ptrdiff_t>(bos), norms.end()});
  for (size_t i = bos; i < norms.size(); ++i) counted[i] = norms[i] > most ? 0 : 1;
  return counted;
}

double row_norm(const float* row, size_t width) {
  double sum = 0;
  for (size_t i = 0; i < width; ++i) sum += static_cast<double>(row[i]) * static_cast<double>(row[i]);
  return std::sqrt(sum);
}

ExcludedRows mean_of_counted(const float* rows, size_t tokens, size_t width, size_t bos, size_t start,
                             float* out) {
  std::vector<double> norms(tokens);
  for (size_t i = 0; i < tokens; ++i) norms[i] = row_norm(rows + i * width, width);
  std::vector<uint8_t> counted = counted_rows(norms, bos);
  const auto from = counted.begin() + static_cast<std::ptrdiff_t>(start);
  if (std::find(from, counted.end(), uint8_t{1}) == counted.end()) std::fill(from, counted.end(), uint8_t{1});
  std::vector<double> sum(width);
  size_t count = 0;
  for (size_t i = start; i < tokens; ++i) {
    if (counted[i] == 0) continue;
    ++count;
    for (size_t at = 0; at < width; ++at) sum[at] += static_cast<double>(rows[i * width + at]);
  }
  for (size_t at = 0; at < width; ++at) out[at] = static_cast<float>(sum[at] / static_cast<double>(count));
  const size_t of_text = tokens - std::max(start, bos);
  return {start <= bos ? bos : size_t{0}, of_text - std::min(of_text, count)};
}

}  // namespace tapline
