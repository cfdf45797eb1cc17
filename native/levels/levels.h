#pragma once

#include <string>

namespace tapline {

/// The name of the processor level whose kernels of ggml compute; null in an addon with kernels of one.
const char* processor_level();

/// The instruction sets that ggml was compiled for and that this processor, or its system, lacks, as
/// "AVX2, AVX-512"; empty if there are none, on other processors than x86-64, and in an addon that chooses
/// its kernels. ggml would end the process at the first of their instructions.
std::string missing_instructions();

}  // namespace tapline
