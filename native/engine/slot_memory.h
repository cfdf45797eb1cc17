#pragma once

#include "llama.h"

namespace tapline {

/// Overwrites the numbers of a removed sequence in a context's memory with zeros. Removal alone keeps them,
/// and a masked NaN still affects sums. Each sequence must have separate cells (`kv_unified` off), and the
/// kind of memory must be known.
void wipe_sequence(llama_memory_t memory, llama_seq_id sequence);

/// Whether wipe_sequence() knows this kind of memory; a model without memory has nothing to wipe.
bool can_wipe_sequence(llama_memory_t memory);

}  // namespace tapline
