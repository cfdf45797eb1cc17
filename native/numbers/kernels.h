#pragma once

// The few inner loops in which training time is spent, once per instruction set, chosen at run time.
//
// Every matrix lives in *panels*: 128 bytes wide (32 float or 16 double) column strips of a padded matrix,
// each strip stored row after row. A strip of depth K is both the right operand of a product (its rows are
// contiguous) and, read the other way, a packed left operand; so nothing is packed, and no stride is a power
// of two.
//
// No kernel splits a sum over threads, and each adds in a fixed order: results do not depend on the number of
// threads or on their timing.

#include <cstddef>
#include <type_traits>

namespace tapline {

/// Width of a panel in elements: 32 for float, 16 for double.
template <class T>
inline constexpr int kPanel = 128 / static_cast<int>(sizeof(T));

/// Numbers of one Adam step (Kingma & Ba 2015, in PyTorch's arrangement).
struct AdamStep {
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  float epsilon = 1e-8f;
  float rate = 0.0f;             ///< learning rate / (1 - beta1^t)
  float inverse_sqrt_bias2 = 1;  ///< 1 / sqrt(1 - beta2^t)
};

/// Products and factors of matrices of T in panels, W = kPanel<T> wide.
template <class T>
struct PanelKernels {
  /// c[i][j] (+)= sum_k a[k][i] * b[k][j], i < W, j < W, k < depth: product of a transposed panel and a
  /// panel.
  void (*product)(const T* a, const T* b, int depth, T* c, bool accumulate);

  /// y[j] += sum_k panel[k][j] * x[k], j < W, k < depth.
  void (*times_vector)(const T* panel, const T* x, int depth, T* y);

  /// y[k] += sum_j panel[k][j] * x[j], k < depth, j < W.
  void (*transposed_times_vector)(const T* panel, const T* x, int depth, T* y);

  /// panel[k][i] = (x_i[k] - centre[k]) * scale[k], rounded once, k < count, i < W, with x_i = rows[i]; 0
  /// where that is null.
  void (*standardise)(const float* const* rows, const double* centre, const double* scale, int count,
                      T* panel);

  /// out[k][i] = panel[k][i] * left[i] * right[k], k < count, i < W.
  void (*scale)(const T* panel, const T* left, const T* right, int count, T* out);

  /// Cholesky factor of a W x W block in place, element (i, j) at [j][i], of which only i >= j is read; zeros
  /// above the diagonal. Also the factor's inverse, in the same layout. False where a pivot is not positive
  /// and finite.
  bool (*factor_diagonal)(T* block, T* inverse);
};

struct Kernels {
  const char* name;

  /// c[i][j] (+)= sum_k a(i, k) * b[k][j], i < rows, j < 32, k < 32 * blocks;
  /// a(i, k) = a[(k / 32) * block_stride + i * 32 + k % 32]: rows of a row-wise panel matrix.
  void (*rows_times_panel)(const float* a, std::ptrdiff_t block_stride, const float* b, int blocks, int rows,
                           float* c, bool accumulate);

  PanelKernels<float> of_floats;
  PanelKernels<double> of_doubles;

  /// sums[k] += x[k] - centre[k], k < count.
  void (*add_differences)(const float* x, const double* centre, int count, double* sums);

  /// sums[k] += (x[k] - centre[k])^2, k < count.
  void (*add_square_differences)(const float* x, const double* centre, int count, double* sums);

  /// sums[k] += factor * (x[k] - centre[k]), k < count.
  void (*add_scaled_differences)(const float* x, const double* centre, double factor, int count,
                                 double* sums);

  /// sum_k (x[k] - centre[k]) * weight[k], k < count.
  double (*difference_dot)(const float* x, const double* centre, const double* weight, int count);

  /// Whether no value is infinite or NaN.
  bool (*all_finite)(const float* x, int count);

  /// z = max(z + bias, 0) over rows of 32.
  void (*bias_relu)(float* z, const float* bias, int rows);

  /// e = e + bias - x over rows of 32; square_sums[i][j] += e_i[j]^2 + e_i[j + 16]^2, j < 16: |e_i|^2 in 16
  /// parts.
  void (*residual)(float* e, const float* bias, const float* x, int rows, float* square_sums);

  /// g = a > 0 ? scale * g + penalty : 0 over rows of 32 (the gradient through ReLU, with the L1 term).
  void (*relu_backward)(float* g, const float* a, const float* penalty, float scale, int rows);

  /// sums[j] = sum_i a[i][j] over rows of 32.
  void (*column_sums)(const float* a, int rows, float* sums);

  /// Adam on rows of 32 weights, with gradient scale * g + shrink[i] * w in row i (shrink may be null).
  void (*adam)(float* weights, float* m, float* v, const float* g, float scale, const float* shrink, int rows,
               const AdamStep& step);

  /// z += bias over rows of 32; maxima[i * stride] = the largest of row i.
  void (*bias_maximum)(float* z, const float* bias, int rows, float* maxima, std::ptrdiff_t stride);

  /// y[k] += factor * x[k], k < 32 * blocks.
  void (*add_scaled)(const float* x, float factor, int blocks, float* y);

  /// sum of x[k] * y[k], k < 32 * blocks, in 32 parts that are then added up.
  float (*dot)(const float* x, const float* y, int blocks);

  /// out[j][i] = in[i][j], i, j < 32; both with row stride 32.
  void (*transpose)(const float* in, float* out);
};

/// The fastest kernels this processor can run.
const Kernels& best_kernels();

template <class T>
const PanelKernels<T>& panel_kernels() {
  if constexpr (std::is_same_v<T, float>) {
    return best_kernels().of_floats;
  } else {
    return best_kernels().of_doubles;
  }
}

/// Kernels by name ("avx512", "avx2", "portable"); null if this processor or build does not support them. For
/// tests.
const Kernels* kernels_by_name(const char* name);

// One table per instruction set that this build has; use best_kernels().
const Kernels& portable_kernels();
#if (defined(__x86_64__) || defined(_M_X64)) && (defined(__GNUC__) || defined(__clang__))
#define TAPLINE_X86_KERNELS 1
const Kernels& avx2_kernels();
const Kernels& avx512_kernels();
#endif

}  // namespace tapline
