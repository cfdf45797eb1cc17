// In released addons, ggml's CPU backend is compiled once for each level of processors, with the level's name
// before all its symbols (scripts/build/rename.js). These are the functions that the other code calls; each
// passes its call on to the backend of the best level that this processor supports.
#include "levels/levels.h"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <unordered_set>

#include "ggml-cpu.h"

#ifdef __aarch64__
#include <sys/prctl.h>
#endif

// TAPLINE_LEVEL_LIST(X) is X(prefix, "name", "required features") for each level, the best first.
#include "tapline-levels.h"

#define TAPLINE_DECLARE(prefix, name, needs)                                                    \
  extern "C" ggml_backend_reg_t prefix##__ggml_backend_cpu_reg();                               \
  extern "C" void prefix##__ggml_backend_cpu_set_n_threads(ggml_backend_t backend, int number); \
  extern "C" void prefix##__ggml_cpu_init();                                                    \
  extern "C" void prefix##__ggml_cpu_fp16_to_fp32(const ggml_fp16_t* from, float* to, int64_t count);
TAPLINE_LEVEL_LIST(TAPLINE_DECLARE)

namespace {

struct Level {
  const char* name;
  const char* needs;
  decltype(&ggml_backend_cpu_reg) registry;
  decltype(&ggml_backend_cpu_set_n_threads) set_n_threads;
  decltype(&ggml_cpu_init) init;
  decltype(&ggml_cpu_fp16_to_fp32) fp16_to_fp32;
};

#define TAPLINE_ROW(prefix, name, needs)     \
  {name,                                     \
   needs,                                    \
   prefix##__ggml_backend_cpu_reg,           \
   prefix##__ggml_backend_cpu_set_n_threads, \
   prefix##__ggml_cpu_init,                  \
   prefix##__ggml_cpu_fp16_to_fp32},
const Level kLevels[] = {TAPLINE_LEVEL_LIST(TAPLINE_ROW)};
constexpr size_t kCount = sizeof kLevels / sizeof *kLevels;

/// Bytes of SVE's vectors; 0 without SVE.
long vector_bytes() {
#if defined(__aarch64__) && defined(PR_SVE_GET_VL)
  const int answer = prctl(PR_SVE_GET_VL, 0, 0, 0, 0);
  return answer < 0 ? 0 : answer & PR_SVE_VL_LEN_MASK;
#else
  return 0;
#endif
}

/// Longer vectors make ggml's SVE products of Q4_K and Q6_K wrong.
constexpr long kMostVectorBytes = 32;

/// Processor features that Linux reports as usable, such as `avx2`.
std::unordered_set<std::string> features() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("flags", 0) != 0 && line.rfind("Features", 0) != 0) continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    std::unordered_set<std::string> found;
    for (std::string word; words >> word;) found.insert(word);
    if (vector_bytes() > kMostVectorBytes) found.erase("sve2");
    return found;  // the first processor is enough
  }
  return {};
}

const Level& choose() {
  if (const char* named = std::getenv("TAPLINE_LEVEL")) {
    for (const Level& level : kLevels) {
      if (std::strcmp(level.name, named) == 0) return level;
    }
  }
  const std::unordered_set<std::string> here = features();
  for (const Level& level : kLevels) {
    std::istringstream words(level.needs);
    bool runs = true;
    for (std::string word; words >> word;) runs = runs && here.count(word) > 0;
    if (runs) return level;
  }
  return kLevels[kCount - 1];
}

const Level& chosen() {
  static const Level& level = choose();
  return level;
}

}  // namespace

const char* tapline::processor_level() {
  return chosen().name;
}
std::string tapline::missing_instructions() {
  return {};
}

extern "C" {

ggml_backend_reg_t ggml_backend_cpu_reg() {
  return chosen().registry();
}
void ggml_backend_cpu_set_n_threads(ggml_backend_t backend, int number) {
  chosen().set_n_threads(backend, number);
}
void ggml_cpu_init() {
  chosen().init();
}
void ggml_cpu_fp16_to_fp32(const ggml_fp16_t* from, float* to, int64_t count) {
  chosen().fp16_to_fp32(from, to, count);
}
}
