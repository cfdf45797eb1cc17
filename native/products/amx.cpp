#include "amx.h"

#ifdef TAPLINE_AMX

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace tapline::products {

bool has_amx() {
  static const bool has = [] {
    const char* const setting = std::getenv("TAPLINE_AMX");
    if (setting != nullptr && std::strcmp(setting, "0") == 0) return false;
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned features = 0;
    constexpr unsigned kNeeded = 1U << 22U | 1U << 24U;  // products of bfloat16, and the registers
    if (__get_cpuid_count(7, 0, &a, &b, &c, &features) == 0 || (features & kNeeded) != kNeeded) return false;
    // Linux saves the registers of a process only after it has asked for that.
    constexpr long kAsk = 0x1023;
    constexpr long kRegisters = 18;
    return syscall(SYS_arch_prctl, kAsk, kRegisters) == 0;
  }();
  return has;
}

}  // namespace tapline::products

#endif  // TAPLINE_AMX
