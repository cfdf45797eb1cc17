#pragma once

namespace tapline {

/// The name of the processor level whose kernels of ggml compute, in an addon with kernels of several.
const char* processor_level();

}  // namespace tapline
