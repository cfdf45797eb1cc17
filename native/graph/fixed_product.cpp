#include "graph/fixed_product.h"

#include <algorithm>

namespace tapline {

namespace {

// Panels of rows that one task multiplies with a panel of the matrix while that is in the cache.
constexpr int kMostPanels = 8;
// Columns that are multiplied before the next panel.
constexpr int kDepthStep = 256;

}  // namespace

template <class T>
template <class M>
FixedProduct<T>::FixedProduct(const M* matrix, int height, int width, bool transposed, ThreadTeam& team)
    : panels_(transposed ? width : height, transposed ? height : width) {
  constexpr int kWidth = PanelMatrix<T>::kWidth;
  team.parallel_for(panels_.panels(), [&](int p) {
    T* to = panels_.panel(p);
    const int first = p * kWidth;
    const int count = std::min(kWidth, panels_.rows() - first);
    for (int k = 0; k < panels_.depth(); ++k) {
      for (int r = 0; r < count; ++r) {
        const size_t row = static_cast<size_t>(transposed ? k : first + r);
        const size_t column = static_cast<size_t>(transposed ? first + r : k);
        to[k * kWidth + r] = static_cast<T>(matrix[row * static_cast<size_t>(width) + column]);
      }
    }
  });
}

template <class T>
void FixedProduct<T>::apply(const T* x, int rows, T* y, ThreadTeam& team) const {
  constexpr int kWidth = PanelMatrix<T>::kWidth;
  const int depth = in();
  const int row_panels = round_up(rows, kWidth) / kWidth;
  const int group = std::clamp(row_panels / team.size(), 1, kMostPanels);
  team.parallel_for((row_panels + group - 1) / group, [&](int task) {
    const int begin = task * group * kWidth;
    const int end = std::min(rows, begin + group * kWidth);
    PanelMatrix<T> part(end - begin, depth);
    for (int r = begin; r < end; ++r) {
      const T* row = x + static_cast<size_t>(r) * static_cast<size_t>(depth);
      T* to = part.panel((r - begin) / kWidth) + (r - begin) % kWidth;
      for (int k = 0; k < depth; ++k) to[k * kWidth] = row[k];
    }
    alignas(64) T tile[kWidth * kWidth];
    for (int p = 0; p < panels_.panels(); ++p) {
      const int columns = std::min(kWidth, out() - p * kWidth);
      for (int q = 0; q < part.panels(); ++q) {
        for (int k = 0; k < depth; k += kDepthStep) {
          panel_kernels<T>().product(panels_.panel(p) + k * kWidth, part.panel(q) + k * kWidth,
                                     std::min(kDepthStep, depth - k), tile, k > 0);
        }
        const int here = std::min(kWidth, end - begin - q * kWidth);
        for (int r = 0; r < here; ++r) {
          T* to = y + static_cast<size_t>(begin + q * kWidth + r) * static_cast<size_t>(out()) + p * kWidth;
          for (int c = 0; c < columns; ++c) to[c] = tile[c * kWidth + r];
        }
      }
    }
  });
}

template class FixedProduct<float>;
template class FixedProduct<double>;
template FixedProduct<float>::FixedProduct(const float*, int, int, bool, ThreadTeam&);
template FixedProduct<double>::FixedProduct(const float*, int, int, bool, ThreadTeam&);
template FixedProduct<double>::FixedProduct(const double*, int, int, bool, ThreadTeam&);

}  // namespace tapline
