#include "graph/fixed_product.h"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

namespace tapline {

namespace {

// Panels of rows and of the matrix that one task multiplies, at most.
constexpr int kRowPanels = 8;
constexpr int kMatrixPanels = 32;
// Tasks per thread, of which one may begin late.
constexpr int kTasks = 4;
// Columns of a task's panels of rows that stay in the second-level cache (512 KB), and of one panel of each
// side in the first (32 KB).
constexpr int kFarColumns = 512;
constexpr int kNearColumns = 128;

/// out[j][i] = in[i][j], i, j < kPanel, both with row stride kPanel.
template <class T>
void transpose(const T* in, T* out) {
  constexpr int kWidth = kPanel<T>;
  if constexpr (std::is_same_v<T, float>) {
    best_kernels().transpose(in, out);
  } else {
    for (int i = 0; i < kWidth; ++i)
      for (int j = 0; j < kWidth; ++j) out[j * kWidth + i] = in[i * kWidth + j];
  }
}

/// Arranges at most kPanel rows of `depth` as a panel; missing rows are zero.
template <class T, class M>
void arrange(const M* rows, int count, int depth, T* panel) {
  constexpr int kWidth = kPanel<T>;
  alignas(64) T block[kWidth * kWidth];
  alignas(64) T turned[kWidth * kWidth];
  std::fill_n(block, kWidth * kWidth, T{0});
  for (int from = 0; from < depth; from += kWidth) {
    const int columns = std::min(kWidth, depth - from);
    for (int r = 0; r < count; ++r) {
      const M* row = rows + static_cast<size_t>(r) * static_cast<size_t>(depth) + from;
      for (int k = 0; k < columns; ++k) block[r * kWidth + k] = static_cast<T>(row[k]);
    }
    T* to = panel + static_cast<size_t>(from) * kWidth;
    if (columns == kWidth) {
      transpose(block, to);
      continue;
    }
    transpose(block, turned);
    std::copy_n(turned, columns * kWidth, to);
  }
}

template <class T>
int panels_of(int rows) {
  return round_up(rows, kPanel<T>) / kPanel<T>;
}

template <class T>
size_t panel_size(int depth) {
  return static_cast<size_t>(depth) * kPanel<T>;
}

/// A thread's own numbers, at least `size` of them; they stay, so that no call gets new pages of memory.
template <class T>
T* at_least(std::vector<T>& numbers, size_t size) {
  if (numbers.size() < size) numbers.resize(size);
  return numbers.data();
}

/// Fetches one of `parts` of a piece of a panel: the matrix comes from memory, all else from caches.
template <class T>
void fetch_part(const T* piece, int columns, int part, int parts) {
#if defined(__GNUC__) || defined(__clang__)
  constexpr size_t kLine = 64;
  const size_t lines = static_cast<size_t>(columns) * kPanel<T> * sizeof(T) / kLine;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(piece);
  const auto [at, of] = std::pair(static_cast<size_t>(part), static_cast<size_t>(parts));
  for (size_t line = lines * at / of; line < lines * (at + 1) / of; ++line)
    __builtin_prefetch(bytes + line * kLine, /*rw=*/0, /*locality=*/2);
#else
  (void)piece, (void)columns, (void)part, (void)parts;
#endif
}

}  // namespace

template <class T>
template <class M>
FixedProduct<T>::FixedProduct(const M* matrix, int height, int width, bool transposed, ThreadTeam& team)
    : panels_(transposed ? width : height, transposed ? height : width, Unwritten{}) {
  constexpr int kWidth = PanelMatrix<T>::kWidth;
  team.parallel_for(panels_.panels(), [&](int p) {
    T* to = panels_.panel(p);
    const int first = p * kWidth;
    const int count = std::min(kWidth, panels_.rows() - first);
    if (!transposed) {
      arrange(matrix + static_cast<size_t>(first) * static_cast<size_t>(width), count, width, to);
      return;
    }
    for (int k = 0; k < height; ++k) {
      const M* row = matrix + static_cast<size_t>(k) * static_cast<size_t>(width) + first;
      T* here = to + static_cast<size_t>(k) * kWidth;
      for (int r = 0; r < count; ++r) here[r] = static_cast<T>(row[r]);
      std::fill(here + count, here + kWidth, T{0});
    }
  });
}

template <class T>
struct FixedProduct<T>::Task {
  int from, to;              // of the matrix's panels
  int first_rows, end_rows;  // of the rows' panels
};

template <class T>
void FixedProduct<T>::multiply(const Task& task, const T* arranged, int rows, T* y) const {
  constexpr int kWidth = kPanel<T>;
  constexpr size_t kTile = static_cast<size_t>(kWidth) * kWidth;
  const int depth = in();
  const int across = task.end_rows - task.first_rows;
  thread_local std::vector<T> memory;
  T* tiles = at_least(memory, static_cast<size_t>((task.to - task.from) * across) * kTile);
  const auto tile_at = [&](int p, int q) {
    return tiles + static_cast<size_t>((p - task.from) * across + q - task.first_rows) * kTile;
  };
  for (int far = 0; far < depth; far += kFarColumns) {
    const int end = std::min(depth, far + kFarColumns);
    for (int p = task.from; p < task.to; ++p) {
      for (int k = far; k < end; k += kNearColumns) {
        const bool ends = k + kNearColumns >= end;
        const int next = ends ? far : k + kNearColumns;
        const int next_panel = ends ? p + 1 : p;
        for (int q = task.first_rows; q < task.end_rows; ++q) {
          if (next_panel < task.to)
            fetch_part(panels_.panel(next_panel) + next * kWidth, std::min(kNearColumns, end - next),
                       q - task.first_rows, across);
          panel_kernels<T>().product(panels_.panel(p) + k * kWidth,
                                     arranged + static_cast<size_t>(q) * panel_size<T>(depth) + k * kWidth,
                                     std::min(kNearColumns, end - k), tile_at(p, q), k > 0);
        }
      }
    }
  }
  alignas(64) T turned[kTile];
  for (int q = task.first_rows; q < task.end_rows; ++q) {
    const int here = std::min(kWidth, rows - q * kWidth);
    for (int p = task.from; p < task.to; ++p) {
      transpose(tile_at(p, q), turned);
      const int columns = std::min(kWidth, out() - p * kWidth);
      for (int r = 0; r < here; ++r) {
        std::copy_n(turned + r * kWidth, columns,
                    y + static_cast<size_t>(q * kWidth + r) * static_cast<size_t>(out()) + p * kWidth);
      }
    }
  }
}

template <class T>
void FixedProduct<T>::apply(const T* x, int rows, T* y, ThreadTeam& team) const {
  const int row_panels = panels_of<T>(rows);
  const int groups = (row_panels + kRowPanels - 1) / kRowPanels;
  const int wide = std::clamp(panels_.panels() * groups / (kTasks * team.size()), 1, kMatrixPanels);
  thread_local std::vector<T> memory;
  T* arranged = at_least(memory, static_cast<size_t>(row_panels) * panel_size<T>(in()));
  const auto row_panel = [&](int q) {
    const int first = q * kPanel<T>;
    arrange(x + static_cast<size_t>(first) * static_cast<size_t>(in()), std::min(kPanel<T>, rows - first),
            in(), arranged + static_cast<size_t>(q) * panel_size<T>(in()));
  };
  team.parallel_for(row_panels, row_panel);
  team.parallel_for(groups * ((panels_.panels() + wide - 1) / wide), [&](int task) {
    const int from = task / groups * wide;
    const int first = task % groups * kRowPanels;
    multiply({from, std::min(panels_.panels(), from + wide), first, std::min(row_panels, first + kRowPanels)},
             arranged, rows, y);
  });
}

template class FixedProduct<float>;
template class FixedProduct<double>;
template FixedProduct<float>::FixedProduct(const float*, int, int, bool, ThreadTeam&);
template FixedProduct<double>::FixedProduct(const float*, int, int, bool, ThreadTeam&);
template FixedProduct<double>::FixedProduct(const double*, int, int, bool, ThreadTeam&);

}  // namespace tapline
