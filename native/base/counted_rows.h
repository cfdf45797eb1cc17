#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tapline {

/// Activations of a text that do not count in means, vectors, probes of means, dictionary training and
/// fidelity.
struct ExcludedRows {
  size_t bos = 0;
  size_t outliers = 0;  // norm above ten times the median

  ExcludedRows& operator+=(const ExcludedRows& other) {
    bos += other.bos;
    outliers += other.outliers;
    return *this;
  }
};

/// Tokens at the start of a text that are its BOS, `bos`; a text of nothing else counts.
size_t bos_tokens(int32_t bos, const std::vector<int32_t>& tokens);

/// 1 for each activation of a text that counts, from the norms of all its tokens' activations at one place:
/// not the first `bos` ones, and none whose norm is above ten times the median norm of the others. The median
/// is the text's own, so that what counts does not depend on which texts are in the same batch, shard or
/// request; half of a text's activations count in any case.
std::vector<uint8_t> counted_rows(const std::vector<double>& norms, size_t bos);

/// The L2 norm of a row.
double row_norm(const float* row, size_t width);

/// The mean of a text's rows from `start` on that count, all of its rows given, [tokens][width]. Where none
/// of them does, as in a response of one long activation, they all do.
ExcludedRows mean_of_counted(const float* rows, size_t tokens, size_t width, size_t bos, size_t start,
                             float* out);

}  // namespace tapline
