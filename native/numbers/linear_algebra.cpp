#include "numbers/linear_algebra.h"

#include <algorithm>
#include <cstdint>

namespace tapline {

namespace {

// Bytes of a slice's row, whose products are summed one after another: all panels' slices stay in the
// second-level cache together.
constexpr int kSliceBytes = 1024;
template <class T>
constexpr int kDepthStep = kSliceBytes / static_cast<int>(sizeof(T));
// Fewer multiplications than this run on one thread.
constexpr int kFewProducts = 24 * 16 * 16 * 16;

// Adds to (or sets) blocks (row_block, 0 ... row_block) the product over a slice of the depth, of which the
// first `depth` columns count.
template <class T>
void gram_row(const PanelMatrix<T>& slice, int depth, int row_block, bool accumulate, PanelMatrix<T>& out) {
  constexpr int kWidth = PanelMatrix<T>::kWidth;
  T* row = out.panel(row_block);
  const T* right = slice.panel(row_block);
  for (int column = 0; column <= row_block; ++column) {
    panel_kernels<T>().product(slice.panel(column), right, depth, row + column * kWidth * kWidth, accumulate);
  }
}

}  // namespace

template <class T>
void gram_lower(int rows, int depth, const FillSlice<T>& fill, PanelMatrix<T>& out) {
  PanelMatrix<T> slice(rows, std::min(depth, kDepthStep<T>));
  for (int from = 0; from < depth; from += kDepthStep<T>) {
    const int count = std::min(kDepthStep<T>, depth - from);
    for (int p = 0; p < slice.panels(); ++p) fill(p, from, count, slice.panel(p));
    for (int block = 0; block < slice.panels(); ++block) gram_row(slice, count, block, from > 0, out);
  }
}

template <class T>
PanelMatrix<T> gram(int rows, int depth, const FillSlice<T>& fill, ThreadTeam& team) {
  constexpr int kWidth = PanelMatrix<T>::kWidth;
  constexpr int kBlock = kWidth * kWidth;
  const int panels = round_up(rows, kWidth) / kWidth;
  PanelMatrix<T> out(panels * kWidth, panels * kWidth);
  PanelMatrix<T> slice(rows, std::min(depth, kDepthStep<T>));
  for (int from = 0; from < depth; from += kDepthStep<T>) {
    const int count = std::min(kDepthStep<T>, depth - from);
    team.parallel_for(panels, [&](int p) { fill(p, from, count, slice.panel(p)); });
    // Longest rows first, so that no thread ends up alone with one.
    team.parallel_for(panels, [&](int task) { gram_row(slice, count, panels - 1 - task, from > 0, out); });
  }
  team.parallel_for(panels, [&](int block) {
    for (int column = block + 1; column < panels; ++column) {
      const T* from = out.panel(column) + block * kBlock;
      T* to = out.panel(block) + column * kBlock;
      for (int i = 0; i < kWidth; ++i) {
        for (int j = 0; j < kWidth; ++j) to[i * kWidth + j] = from[j * kWidth + i];
      }
    }
  });
  return out;
}

template <class T>
void times(const PanelMatrix<T>& x, const T* v, T* y) {
  constexpr int kWidth = PanelMatrix<T>::kWidth;
  std::fill_n(y, x.padded(), T{0});
  for (int p = 0; p < x.panels(); ++p) {
    panel_kernels<T>().times_vector(x.panel(p), v, x.depth(), y + p * kWidth);
  }
}

template <class T>
void transposed_times(const PanelMatrix<T>& x, const T* v, T* y) {
  constexpr int kWidth = PanelMatrix<T>::kWidth;
  std::fill_n(y, x.depth(), T{0});
  for (int p = 0; p < x.panels(); ++p) {
    panel_kernels<T>().transposed_times_vector(x.panel(p), v + p * kWidth, x.depth(), y);
  }
}

template <class T>
Cholesky<T>::Cholesky(PanelMatrix<T>& matrix, ThreadTeam* team)
    : factor_(matrix), inverses_(static_cast<size_t>(matrix.panels()) * kBlock) {
  const int threads = team == nullptr ? 1 : team->size();
  for (int j = 0; j < factor_.panels(); ++j) {
    if (j > 0) subtract_known(j, j);
    if (!panel_kernels<T>().factor_diagonal(factor_.panel(j) + j * kBlock, inverses_.data() + j * kBlock)) {
      ok_ = false;
      return;
    }
    // Block rows are independent of each other, so that the factor does not depend on the number of threads.
    const int rows = factor_.panels() - j - 1;
    const int64_t products = static_cast<int64_t>(j) * rows * kBlock * kWidth;
    const int parts = products < kFewProducts ? 1 : std::min(threads, rows);
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

// Subtracts the part of the blocks to the left from a block.
template <class T>
void Cholesky<T>::subtract_known(int row_block, int column_block) {
  alignas(64) T block[kBlock];
  T* target = factor_.panel(row_block) + column_block * kBlock;
  panel_kernels<T>().product(factor_.panel(column_block), factor_.panel(row_block), column_block * kWidth,
                             block, false);
  for (int e = 0; e < kBlock; ++e) target[e] -= block[e];
}

// A block below the diagonal: subtracts the known part and divides by the transposed diagonal factor from the
// right.
template <class T>
void Cholesky<T>::finish_row(int row_block, int column_block) {
  alignas(64) T block[kBlock];
  if (column_block > 0) subtract_known(row_block, column_block);
  T* target = factor_.panel(row_block) + column_block * kBlock;
  panel_kernels<T>().product(inverses_.data() + column_block * kBlock, target, kWidth, block, false);
  std::copy_n(block, kBlock, target);
}

template <class T>
void Cholesky<T>::solve(T* b) const {
  const PanelKernels<T>& kernels = panel_kernels<T>();
  const int blocks = factor_.panels();
  T solved[kWidth];
  // Forward: a row panel times the solution so far, then the diagonal block.
  for (int i = 0; i < blocks; ++i) {
    T known[kWidth] = {};
    kernels.times_vector(factor_.panel(i), b, i * kWidth, known);
    for (int e = 0; e < kWidth; ++e) known[e] = b[i * kWidth + e] - known[e];
    std::fill_n(solved, kWidth, T{0});
    kernels.times_vector(inverses_.data() + i * kBlock, known, kWidth, solved);
    std::copy_n(solved, kWidth, b + i * kWidth);
  }
  // Backward: each solved block is subtracted from all earlier ones.
  std::vector<T> taken(static_cast<size_t>(blocks) * kWidth, T{0});
  for (int i = blocks - 1; i >= 0; --i) {
    T known[kWidth];
    for (int e = 0; e < kWidth; ++e) known[e] = b[i * kWidth + e] - taken[i * kWidth + e];
    std::fill_n(solved, kWidth, T{0});
    kernels.transposed_times_vector(inverses_.data() + i * kBlock, known, kWidth, solved);
    std::copy_n(solved, kWidth, b + i * kWidth);
    kernels.transposed_times_vector(factor_.panel(i), solved, i * kWidth, taken.data());
  }
}

template PanelMatrix<float> gram(int, int, const FillSlice<float>&, ThreadTeam&);
template PanelMatrix<double> gram(int, int, const FillSlice<double>&, ThreadTeam&);
template void gram_lower(int, int, const FillSlice<double>&, PanelMatrix<double>&);
template void times(const PanelMatrix<float>&, const float*, float*);
template void times(const PanelMatrix<double>&, const double*, double*);
template void transposed_times(const PanelMatrix<double>&, const double*, double*);
template class Cholesky<float>;
template class Cholesky<double>;

}  // namespace tapline
