#pragma once

// The matrix registers (AMX) of Sapphire Rapids and later Xeons, in assembly: GCC before 13.2.1 compiles its
// own functions for setting them up to a crash. ggml does not use them here, because it would copy the
// weights (docs/contributing/building.md, "Disabled instruction sets").

#include "products.h"

#if TAPLINE_PRODUCTS == 16 && defined(__GNUC__) && defined(__linux__)
#define TAPLINE_AMX 1
#endif

namespace tapline::products {

#ifdef TAPLINE_AMX

/// Whether the processor has matrix registers and the system allows this process to use them. TAPLINE_AMX=0
/// in the environment switches them off.
bool has_amx();

/// Bytes of a register.
constexpr int64_t kRegister = 16 * 64;

/// Sets this thread's registers up, sixteen rows of a vector each, until the end of a scope. 0 to 3 are sums
/// of 16 by 16 numbers; of the operands, 4 and 5 have rows of weights, 6 and 7 tokens.
class MatrixRegisters {
 public:
  MatrixRegisters() {
    struct alignas(64) {
      uint8_t palette = 1;
      uint8_t reserved[15] = {};
      uint16_t row_bytes[16] = {};
      uint8_t rows[16] = {};
    } set;
    for (int i = 0; i < 8; ++i) {
      set.row_bytes[i] = 64;
      set.rows[i] = 16;
    }
    asm volatile("ldtilecfg %0" : : "m"(set));
  }
  ~MatrixRegisters() { asm volatile("tilerelease"); }
  MatrixRegisters(const MatrixRegisters&) = delete;
  MatrixRegisters& operator=(const MatrixRegisters&) = delete;
};

template <int kTo>
void load_register(const void* from, int64_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(kTo) : "memory");
}
template <int kFrom>
void store_register(void* to, int64_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(stride), "i"(kFrom) : "memory");
}
template <int kTo>
void clear_register() {
  asm volatile("tilezero %%tmm%c0" : : "i"(kTo));
}
/// Adds products of pairs of bfloat16 to sums in F32.
template <int kSum, int kWeights, int kTokens>
void add_halves() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kWeights), "i"(kTokens));
}

#endif

}  // namespace tapline::products
