#include "numbers/kernels.h"

#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace tapline {

const Kernels* kernels_by_name(const char* name) {
#ifdef TAPLINE_X86_KERNELS
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
  if (std::strcmp(name, "avx512") == 0) return avx512 ? &avx512_kernels() : nullptr;
  if (std::strcmp(name, "avx2") == 0) return avx2 ? &avx2_kernels() : nullptr;
#endif
  return std::strcmp(name, "portable") == 0 ? &portable_kernels() : nullptr;
}

const Kernels& best_kernels() {
  static const Kernels& best = []() -> const Kernels& {
    const char* const asked = std::getenv("TAPLINE_KERNELS");  // tests compare all that a machine can run
    if (asked != nullptr && kernels_by_name(asked) != nullptr) return *kernels_by_name(asked);
    for (const char* name : {"avx512", "avx2"}) {
      if (const Kernels* kernels = kernels_by_name(name)) return *kernels;
    }
    return portable_kernels();
  }();
  return best;
}

}  // namespace tapline
