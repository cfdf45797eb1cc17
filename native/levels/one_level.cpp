// In an addon with kernels for one level of processors.
#include "levels/levels.h"

#include <cstdint>

#include "ggml-cpu.h"

#if defined(__x86_64__) || defined(_M_X64)
#ifdef _MSC_VER
#include <intrin.h>
#else
#include <cpuid.h>
#endif

namespace tapline {

namespace {

struct Registers {
  uint32_t eax, ebx, ecx, edx;
};

/// The processor's description of itself; zeros if it lacks this part.
Registers cpuid(uint32_t leaf, uint32_t subleaf) {
  Registers r{};
#ifdef _MSC_VER
  int answer[4];
  __cpuid(answer, 0);
  if (static_cast<uint32_t>(answer[0]) < leaf) return r;
  __cpuidex(answer, static_cast<int>(leaf), static_cast<int>(subleaf));
  r = {static_cast<uint32_t>(answer[0]), static_cast<uint32_t>(answer[1]), static_cast<uint32_t>(answer[2]),
       static_cast<uint32_t>(answer[3])};
#else
  if (__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx) == 0) return {};
#endif
  return r;
}

/// The registers that the system saves, by XCR0's bits; 0 if it saves none beyond SSE's.
uint64_t saved_registers() {
  constexpr uint32_t kOsxsave = uint32_t{1} << 27U;
  if ((cpuid(1, 0).ecx & kOsxsave) == 0) return 0;
#ifdef _MSC_VER
  return _xgetbv(0);
#else
  uint32_t low = 0;
  uint32_t high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32U | low;
#endif
}

}  // namespace

std::string missing_instructions() {
  const auto bit = [](uint32_t word, unsigned index) { return (word >> index & 1U) != 0; };
  const Registers basic = cpuid(1, 0);
  const Registers extended = cpuid(7, 0);
  const uint32_t newest = extended.eax > 0 ? cpuid(7, 1).eax : 0;
  const uint64_t saved = saved_registers();
  constexpr uint64_t kAvx = 0x06;     // SSE's and AVX's
  constexpr uint64_t kAvx512 = 0xE6;  // and those of AVX-512
  const bool avx = (saved & kAvx) == kAvx;
  const bool avx512 = (saved & kAvx512) == kAvx512;
  struct Set {
    const char* name;
    bool used;
    bool here;
  };
  const Set sets[] = {
      {"AVX", ggml_cpu_has_avx() != 0, avx && bit(basic.ecx, 28)},
      {"FMA", ggml_cpu_has_fma() != 0, avx && bit(basic.ecx, 12)},
      {"F16C", ggml_cpu_has_f16c() != 0, avx && bit(basic.ecx, 29)},
      {"AVX2", ggml_cpu_has_avx2() != 0, avx && bit(extended.ebx, 5)},
      {"BMI2", ggml_cpu_has_bmi2() != 0, bit(extended.ebx, 8)},
      {"AVX-VNNI", ggml_cpu_has_avx_vnni() != 0, avx && bit(newest, 4)},
      {"AVX-512", ggml_cpu_has_avx512() != 0, avx512 && bit(extended.ebx, 16)},
      {"AVX-512 VBMI", ggml_cpu_has_avx512_vbmi() != 0, avx512 && bit(extended.ecx, 1)},
      {"AVX-512 VNNI", ggml_cpu_has_avx512_vnni() != 0, avx512 && bit(extended.ecx, 11)},
      {"AVX-512 BF16", ggml_cpu_has_avx512_bf16() != 0, avx512 && bit(newest, 5)},
  };
  std::string missing;
  for (const Set& set : sets) {
    if (set.used && !set.here) missing += (missing.empty() ? "" : ", ") + std::string(set.name);
  }
  return missing;
}

}  // namespace tapline

#else

std::string tapline::missing_instructions() {
  return {};
}

#endif

const char* tapline::processor_level() {
  return nullptr;
}
