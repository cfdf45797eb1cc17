// Prints the instruction sets that this processor lacks, as if ggml were compiled for all of them.
#include <cstdio>

#include "levels/levels.h"

#define TAPLINE_HAS(name)                \
  extern "C" int ggml_cpu_has_##name() { \
    return 1;                            \
  }
TAPLINE_HAS(avx)
TAPLINE_HAS(fma)
TAPLINE_HAS(f16c)
TAPLINE_HAS(avx2)
TAPLINE_HAS(bmi2)
TAPLINE_HAS(avx_vnni)
TAPLINE_HAS(avx512)
TAPLINE_HAS(avx512_vbmi)
TAPLINE_HAS(avx512_vnni)
TAPLINE_HAS(avx512_bf16)

int main() {
  std::puts(tapline::missing_instructions().c_str());
}
