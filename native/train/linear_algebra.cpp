#include "train/linear_algebra.h"

#include <algorithm>
#include <cmath>

namespace tapline::train {

namespace {

constexpr int kWidth = PanelMatrix::kWidth;
constexpr int kBlock = kWidth * kWidth;
// Depth of the slices in which products are summed: all panels' slices stay in the second-level cache
// together.
constexpr int kDepthStep = 128;
// Products of blocks that are not worth waking another thread for.
constexpr int kFewProducts = 24;

// Adds to (or sets) blocks (row_block, 0 ... row_block) the product over a slice of the depth.
void gram_row(const PanelMatrix& x, int from, int depth, int row_block, bool accumulate, PanelMatrix& out) {
  const Kernels& kernels = best_kernels();
  double* row = out.panel(row_block);
  const double* right = x.panel(row_block) + static_cast<size_t>(from) * kWidth;
  for (int column = 0; column <= row_block; ++column) {
    kernels.panel_product64(x.panel(column) + static_cast<size_t>(from) * kWidth, right, depth,
                            row + column * kBlock, accumulate);
  }
}

}  // namespace

void gram_lower(const PanelMatrix& x, PanelMatrix& out) {
  for (int k = 0; k < x.depth(); k += kDepthStep) {
    const int depth = std::min(kDepthStep, x.depth() - k);
    for (int block = 0; block < x.panels(); ++block) gram_row(x, k, depth, block, k > 0, out);
  }
}

PanelMatrix gram(int rows, int depth, const FillSlice& fill, ThreadTeam& team) {
  const int panels = round_up(rows, kWidth) / kWidth;
  PanelMatrix out(panels * kWidth, panels * kWidth);
  PanelMatrix slice(rows, std::min(depth, kDepthStep));
  for (int from = 0; from < depth; from += kDepthStep) {
    const int count = std::min(kDepthStep, depth - from);
    team.parallel_for(panels, [&](int p) { fill(p, from, count, slice.panel(p)); });
    // Longest rows first, so that no thread ends up alone with one.
    team.parallel_for(panels, [&](int task) { gram_row(slice, 0, count, panels - 1 - task, from > 0, out); });
  }
  team.parallel_for(panels, [&](int block) {
    for (int column = block + 1; column < panels; ++column) {
      const double* from = out.panel(column) + block * kBlock;
      double* to = out.panel(block) + column * kBlock;
      for (int i = 0; i < kWidth; ++i) {
        for (int j = 0; j < kWidth; ++j) to[i * kWidth + j] = from[j * kWidth + i];
      }
    }
  });
  return out;
}

void times(const PanelMatrix& x, const double* v, double* y) {
  std::fill_n(y, x.panels() * kWidth, 0.0);
  for (int p = 0; p < x.panels(); ++p)
    best_kernels().panel_times_vector64(x.panel(p), v, x.depth(), y + p * kWidth);
}

void transposed_times(const PanelMatrix& x, const double* v, double* y) {
  std::fill_n(y, x.depth(), 0.0);
  for (int p = 0; p < x.panels(); ++p) {
    best_kernels().panel_transposed_times_vector64(x.panel(p), v + p * kWidth, x.depth(), y);
  }
}

Cholesky::Cholesky(PanelMatrix& matrix, ThreadTeam* team)
    : factor_(matrix), inverses_(static_cast<size_t>(matrix.panels()) * kBlock, 0.0) {
  const int threads = team == nullptr ? 1 : team->size();
  for (int j = 0; j < factor_.panels(); ++j) {
    if (j > 0) subtract_known(j, j);
    if (!factor_diagonal_block(j)) {
      ok_ = false;
      return;
    }
    // Block rows are independent of each other, so that the factor does not depend on the number of threads.
    const int rows = factor_.panels() - j - 1;
    const int parts = j * rows < kFewProducts ? 1 : std::min(threads, rows);
    const auto finish_part = [&](int part) {
      for (int i = j + 1 + part; i < factor_.panels(); i += parts) finish_row(i, j);
    };
    if (parts > 1) {
      team->parallel_for(parts, finish_part);
    } else if (rows > 0) {
      finish_part(0);
    }
  }
}

// Takes the part of the blocks left of a block out of it.
void Cholesky::subtract_known(int row_block, int column_block) {
  alignas(64) double block[kBlock];
  double* target = factor_.panel(row_block) + column_block * kBlock;
  best_kernels().panel_product64(factor_.panel(column_block), factor_.panel(row_block), column_block * kWidth,
                                 block, false);
  for (int e = 0; e < kBlock; ++e) target[e] -= block[e];
}

// A block below the diagonal: what is known taken out, divided by the transposed diagonal factor from the
// right.
void Cholesky::finish_row(int row_block, int column_block) {
  alignas(64) double block[kBlock];
  if (column_block > 0) subtract_known(row_block, column_block);
  double* target = factor_.panel(row_block) + column_block * kBlock;
  best_kernels().panel_product64(inverses_.data() + static_cast<size_t>(column_block) * kBlock, target,
                                 kWidth, block, false);
  std::copy_n(block, kBlock, target);
}

// Factors diagonal block `block` in place (element (i, j) at [j * 16 + i]) and inverts the factor.
bool Cholesky::factor_diagonal_block(int block) {
  double* a = factor_.panel(block) + block * kBlock;
  for (int j = 0; j < kWidth; ++j) {
    const double pivot = a[j * kWidth + j];
    if (!(pivot > 0.0) || !std::isfinite(pivot)) return false;
    const double root = std::sqrt(pivot);
    a[j * kWidth + j] = root;
    for (int i = 0; i < j; ++i) a[j * kWidth + i] = 0.0;
    for (int i = j + 1; i < kWidth; ++i) a[j * kWidth + i] /= root;
    for (int k = j + 1; k < kWidth; ++k) {
      const double factor = a[j * kWidth + k];
      for (int i = k; i < kWidth; ++i) a[k * kWidth + i] -= factor * a[j * kWidth + i];
    }
  }
  double* inverse = inverses_.data() + static_cast<size_t>(block) * kBlock;
  for (int k = 0; k < kWidth; ++k) {  // column k of the inverse by forward substitution
    for (int i = k; i < kWidth; ++i) {
      double sum = i == k ? 1.0 : 0.0;
      for (int m = k; m < i; ++m) sum -= a[m * kWidth + i] * inverse[k * kWidth + m];
      inverse[k * kWidth + i] = sum / a[i * kWidth + i];
    }
  }
  return true;
}

void Cholesky::solve(double* b) const {
  const Kernels& kernels = best_kernels();
  const int blocks = factor_.panels();
  double solved[kWidth];
  // Forward: a row panel times what is solved so far, then the diagonal block.
  for (int i = 0; i < blocks; ++i) {
    double known[kWidth] = {};
    kernels.panel_times_vector64(factor_.panel(i), b, i * kWidth, known);
    for (int e = 0; e < kWidth; ++e) known[e] = b[i * kWidth + e] - known[e];
    std::fill_n(solved, kWidth, 0.0);
    kernels.panel_times_vector64(inverses_.data() + static_cast<size_t>(i) * kBlock, known, kWidth, solved);
    std::copy_n(solved, kWidth, b + i * kWidth);
  }
  // Backward: each solved block takes its part out of all earlier ones.
  std::vector<double> taken(static_cast<size_t>(blocks) * kWidth, 0.0);
  for (int i = blocks - 1; i >= 0; --i) {
    double known[kWidth];
    for (int e = 0; e < kWidth; ++e) known[e] = b[i * kWidth + e] - taken[i * kWidth + e];
    std::fill_n(solved, kWidth, 0.0);
    kernels.panel_transposed_times_vector64(inverses_.data() + static_cast<size_t>(i) * kBlock, known, kWidth,
                                            solved);
    std::copy_n(solved, kWidth, b + i * kWidth);
    kernels.panel_transposed_times_vector64(factor_.panel(i), solved, i * kWidth, taken.data());
  }
}

}  // namespace tapline::train
