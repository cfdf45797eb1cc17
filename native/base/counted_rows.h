#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tapline {

/// The number of a text's activations that means, vectors, probes of means, dictionary training and fidelity
/// exclude.
struct ExcludedRows {
  size_t bos = 0;
  size_t outliers = 0;  // norm above ten times the median

  ExcludedRows& operator+=(const ExcludedRows& other) {
    bos += other.bos;
    outliers += other.outliers;
    return *this;
  }
};

/// The number of BOS tokens, `bos`, at the start of a text; 0 for a text that is only BOS.
size_t bos_tokens(int32_t bos, const std::vector<int32_t>& tokens);

/// For the norms of a text's activations at one place, 1 for each that is included: not the first `bos`, and
/// none whose norm exceeds ten times the median of the others. The median is per text, so the choice does not
/// depend on the other texts in a batch, shard or request; at least half of the activations are included.
std::vector<uint8_t> counted_rows(const std::vector<double>& norms, size_t bos);

/// The L2 norm of a row.
double row_norm(const float* row, size_t width);

/// The mean of a text's included rows from `start` on; `rows` are all of its rows, [tokens][width]. If none
/// is included, as in a response of one long activation, all of them are.
ExcludedRows mean_of_counted(const float* rows, size_t tokens, size_t width, size_t bos, size_t start,
                             float* out);

}  // namespace tapline
