// Which instruction sets this processor lacks, if ggml were compiled for all of them.
#include <cstdio>

#include "levels/levels.h"

extern "C" {
int ggml_cpu_has_avx() {
  return 1;
}
int ggml_cpu_has_fma() {
  return 1;
}
int ggml_cpu_has_f16c() {
  return 1;
}
int ggml_cpu_has_avx2() {
  return 1;
}
int ggml_cpu_has_bmi2() {
  return 1;
}
int ggml_cpu_has_avx_vnni() {
  return 1;
}
int ggml_cpu_has_avx512() {
  return 1;
}
int ggml_cpu_has_avx512_vbmi() {
  return 1;
}
int ggml_cpu_has_avx512_vnni() {
  return 1;
}
int ggml_cpu_has_avx512_bf16() {
  return 1;
}
}

int main() {
  std::puts(tapline::missing_instructions().c_str());
}
