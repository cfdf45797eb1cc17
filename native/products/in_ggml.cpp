// ggml calls llamafile_sgemm in every thread for each matrix product of more than one row. This
// implementation tries this folder's products first; others go to ggml's function, which CMakeLists.txt has
// renamed.

#include <type_traits>

#include "amx.h"
#include "ggml-cpu-impl.h"
#include "ggml.h"
#include "llamafile/sgemm.h"
#include "products.h"

extern "C" bool ggml_own_sgemm(const ggml_compute_params*, int64_t, int64_t, int64_t, const void*, int64_t,
                               const void*, int64_t, void*, int64_t, int, int, int);

#ifdef __ARM_FEATURE_FP16_VECTOR_ARITHMETIC
#error "ggml would add up in half precision. CMakeLists.txt undefines this macro; something defined it again."
#endif

#ifdef TAPLINE_PRODUCTS

#include <algorithm>
#include <cstring>

#include "scratch.h"

namespace tapline::products {

namespace {

/// The most bytes of packed tokens: more are multiplied in rounds.
constexpr size_t kPacked = size_t{8} << 20U;
constexpr int64_t kLeastPanels = 4;

/// Limits of a take, the groups of rows that a thread multiplies with all tokens: bytes of packed tokens, and
/// of groups, that stay in a core's own cache, so each panel is read from further away once for several
/// groups. Threads end together if groups are few enough for some takes each.
struct Near {
  size_t tokens = size_t{512} << 10U;
  size_t weights = size_t{512} << 10U;
  int64_t groups = 4;
  int64_t takes = 8;
  size_t all_tokens = 0;  // so few bytes stay there whole: groups are taken alone
};
template <class Weight>
constexpr Near kNear = {};
/// Matrix registers read tokens so fast that more groups pay, and each take splits its rows.
template <>
constexpr Near kNear<SplitF32> = {size_t{256} << 10U, size_t{900} << 10U, 6, 3, size_t{5} << 18U};

template <class Weight>
struct Product {
  using Token = typename TokenOf<Weight>::Type;
  static constexpr int64_t kGroup = kRowsTogether<Weight>;
  static constexpr bool kSplit = std::is_same_v<Weight, SplitF32>;

  const ggml_compute_params* params;
  int64_t rows;  // of weights
  int64_t tokens;
  int64_t depth;
  const Weight* weights;
  int64_t weights_stride;
  const Token* inputs;
  int64_t inputs_stride;
  float* results;
  int64_t results_stride;

  static int64_t panels_of(int64_t count) { return (count + kLanes - 1) / kLanes; }
  int64_t groups() const { return (rows + kGroup - 1) / kGroup; }

  void pack_panel(int64_t panel, int64_t from, int64_t count, std::byte* to) const {
    pack(inputs + (from + panel * kLanes) * inputs_stride, inputs_stride,
         std::min(kLanes, count - panel * kLanes), depth,
         to + static_cast<size_t>(panel) * panel_bytes<Token>(depth));
  }

  /// The rows of a group; `next` is the group that this thread takes after it, if there is one.
  WeightRows<Weight> group(int64_t group, int64_t next) const {
    const auto first = [&](int64_t of) { return weights + of * kGroup * weights_stride; };
    // The last group may have fewer rows than would be fetched.
    return {first(group), weights_stride, std::min(kGroup, rows - group * kGroup), depth,
            (next + 1) * kGroup <= rows ? first(next) : nullptr};
  }

  /// Every thread takes as many groups in a row as the others.
  template <class Multiply>
  void share_groups(const Multiply& multiply_group) const {
    const int64_t all = groups();
    const int64_t end = all * (params->ith + 1) / params->nth;
    for (int64_t at = all * params->ith / params->nth; at < end; ++at)
      multiply_group(at, at + 1 < end ? at + 1 : all);
  }

  /// As many tokens as a panel or fewer: every thread packs them, so threads do not wait for each other.
  void compute_one_panel() const {
    thread_local Scratch scratch;
    std::byte* const panel = scratch.at_least(panel_bytes<Token>(depth));
    pack_panel(0, 0, tokens, panel);
    share_groups([&](int64_t at, int64_t next) { multiply_groups(at, at + 1, next, panel, 0, tokens); });
  }

  int64_t groups_together(int64_t panels) const {
    if (static_cast<size_t>(panels) * panel_bytes<Token>(depth) <= kNear<Weight>.all_tokens) return 1;
    const size_t group = kSplit ? split_bytes(depth) : sizeof(Weight) * static_cast<size_t>(kGroup * depth);
    const auto near = static_cast<int64_t>(kNear<Weight>.weights / group);
    const int64_t fair = groups() / (kNear<Weight>.takes * params->nth);
    return std::max<int64_t>(1, std::min({near, fair, kNear<Weight>.groups}));
  }

  /// Groups [first, end) with tokens [from, from + count), a part of the panels after the other. Groups from
  /// `after` on are this thread's next.
  void multiply_groups(int64_t first, int64_t end, int64_t after, const std::byte* packed, int64_t from,
                       int64_t count) const {
    thread_local Scratch scratch;
    const size_t panel = panel_bytes<Token>(depth);
    std::byte* split = nullptr;
    if constexpr (kSplit) {
      split = scratch.at_least(static_cast<size_t>(end - first) * split_bytes(depth));
      for (int64_t g = first; g < end; ++g) {
        split_rows(group(g, groups()), split + static_cast<size_t>(g - first) * split_bytes(depth));
      }
    }
    // Even: two panels are multiplied together.
    const auto fitting = static_cast<int64_t>(kNear<Weight>.tokens / panel) / 2 * 2;
    const int64_t near = end - first == 1 ? panels_of(count) : std::max<int64_t>(2, fitting);
    const int64_t parts = (panels_of(count) + near - 1) / near;
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t p = part * near;
      const int64_t tokens_of_part = std::min(near * kLanes, count - p * kLanes);
      for (int64_t g = first; g < end; ++g) {
        // The next rows are fetched once. These ones have been read if they are split: a share of those of
        // the next take is fetched with each part.
        const int64_t next = kSplit ? after + g - first : part > 0 ? groups() : g + 1 < end ? g + 1 : after;
        WeightRows<Weight> rows_of_group = group(g, next);
        if constexpr (kSplit) {
          rows_of_group.split = split + static_cast<size_t>(g - first) * split_bytes(depth);
          const int64_t from_row = kGroup * part / parts;
          rows_of_group.next_rows = kGroup * (part + 1) / parts - from_row;
          if (rows_of_group.next != nullptr) rows_of_group.next += from_row * weights_stride;
        }
        multiply(rows_of_group, packed + static_cast<size_t>(p) * panel, tokens_of_part,
                 results + (from + p * kLanes) * results_stride + g * kGroup, results_stride);
      }
    }
  }

  /// Tokens [from, from + count): threads share the packing, then take groups of rows dynamically.
  void compute_round(int64_t from, int64_t count) const {
    thread_local Scratch scratch;
    const int64_t panels = panels_of(count);
    // All threads use the first thread's memory. Its address is passed through the result buffer.
    float* const place = results + from * results_stride;
    std::byte* packed = nullptr;
    if (params->ith == 0) {
      packed = scratch.at_least(static_cast<size_t>(panels) * panel_bytes<Token>(depth));
      std::memcpy(place, &packed, sizeof packed);
      ggml_threadpool_chunk_set(params->threadpool, params->nth);
    }
    ggml_barrier(params->threadpool);
    std::memcpy(&packed, place, sizeof packed);
    const int64_t end = panels * (params->ith + 1) / params->nth;
    for (int64_t panel = panels * params->ith / params->nth; panel < end; ++panel)
      pack_panel(panel, from, count, packed);
    ggml_barrier(params->threadpool);
    const int64_t all = groups();
    const int64_t together = groups_together(panels);
    const auto take = [&] { return together * ggml_threadpool_chunk_add(params->threadpool, 1); };
    int64_t next = params->ith * together < all ? take() : 0;
    for (int64_t at = params->ith * together; at < all; at = next, next = take())
      multiply_groups(at, std::min(at + together, all), next, packed, from, count);
    ggml_barrier(params->threadpool);
  }

  void compute_few() const {
    share_groups([&](int64_t at, int64_t next) {
      multiply_few(group(at, next), inputs, inputs_stride, tokens, results + at * kGroup, results_stride);
    });
  }

  void compute() const {
    if constexpr (kQuantised<Weight>) {
      if (tokens <= kFewTokens) return compute_few();
    }
    if (tokens <= kLanes) return compute_one_panel();
    const auto fitting = static_cast<int64_t>(kPacked / panel_bytes<Token>(depth));
    const int64_t most = std::max(kLeastPanels, fitting) * kLanes;
    for (int64_t from = 0; from < tokens; from += most) compute_round(from, std::min(most, tokens - from));
  }
};

/// From this number of tokens on these products are faster than ggml's. Those of quantised weights take any
/// number, because different rounding of rows would grow to percents a few blocks later.
constexpr int64_t kLeastPlain = kLanes == 16 ? 6 : 16;

/// Computes a product, or returns false if the types are not supported.
bool product(const ggml_compute_params* params, int64_t m, int64_t n, int64_t k, const void* a, int64_t lda,
             const void* b, int64_t ldb, void* c, int64_t ldc, int a_type, int b_type) {
  const auto of = [&](const auto* weights) {
    using Weight = std::remove_const_t<std::remove_pointer_t<decltype(weights)>>;
    using Token = typename TokenOf<Weight>::Type;
    Product<Weight>{params, m, n, k, weights, lda, static_cast<const Token*>(b), ldb, static_cast<float*>(c),
                    ldc}
        .compute();
    return true;
  };
  if (params->use_ref) return false;
  if (m < kLanes) return false;
  if (a_type == GGML_TYPE_F32 && b_type == GGML_TYPE_F32) {
    if (n < kLeastPlain) return false;
#ifdef TAPLINE_AMX
    if (has_amx()) return of(static_cast<const SplitF32*>(a));
#endif
    return of(static_cast<const float*>(a));
  }
  if (b_type == GGML_TYPE_Q8_0) {
    if (a_type == GGML_TYPE_Q8_0) return of(static_cast<const Q8_0*>(a));
    if (a_type == GGML_TYPE_Q5_0) return of(static_cast<const Q5_0*>(a));
  }
  if (b_type == GGML_TYPE_Q8_1) {
    if (a_type == GGML_TYPE_Q4_1) return of(static_cast<const Q4_1*>(a));
    if (a_type == GGML_TYPE_Q5_1) return of(static_cast<const Q5_1*>(a));
  }
  return false;
}

}  // namespace

}  // namespace tapline::products

#endif

#ifdef TAPLINE_ALONE

namespace tapline::products {

namespace {

/// Computes a product of F16 weights and one token, or returns false: of the sizes of which ggml multiplies
/// several tokens in the same order.
bool product_alone(const ggml_compute_params* params, int64_t m, int64_t n, int64_t k, const void* a,
                   int64_t lda, const void* b, void* c, int a_type, int b_type) {
  constexpr bool kPlain = std::is_same_v<AloneToken, float>;
  if (a_type != GGML_TYPE_F16 || b_type != (kPlain ? GGML_TYPE_F32 : GGML_TYPE_F16)) return false;
  if (params->use_ref || n != 1 || m % 4 != 0 || k % TAPLINE_ALONE != 0) return false;
  // Rows that are not contiguous are keys or values, for which ggml also rounds several tokens.
  if (kPlain && lda != k) return false;
  const int64_t from = m / 4 * params->ith / params->nth * 4;
  const int64_t to = m / 4 * (params->ith + 1) / params->nth * 4;
  multiply_alone(static_cast<const Half*>(a) + from * lda, lda, to - from, k,
                 static_cast<const AloneToken*>(b), static_cast<float*>(c) + from);
  return true;
}

}  // namespace

}  // namespace tapline::products

#endif

extern "C" bool llamafile_sgemm(const ggml_compute_params* params, int64_t m, int64_t n, int64_t k,
                                const void* a, int64_t lda, const void* b, int64_t ldb, void* c, int64_t ldc,
                                int a_type, int b_type, int c_type) {
#ifdef TAPLINE_ALONE
  if (c_type == GGML_TYPE_F32 &&
      tapline::products::product_alone(params, m, n, k, a, lda, b, c, a_type, b_type))
    return true;
#endif
#ifdef TAPLINE_PRODUCTS
  if (c_type == GGML_TYPE_F32 &&
      tapline::products::product(params, m, n, k, a, lda, b, ldb, c, ldc, a_type, b_type))
    return true;
#endif
  return ggml_own_sgemm(params, m, n, k, a, lda, b, ldb, c, ldc, a_type, b_type, c_type);
}
