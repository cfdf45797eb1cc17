#pragma once

#include "llama.h"

namespace tapline {

/// Overwrites with zeros what a sequence left in a context's memory, after it was removed from there.
/// Removing alone keeps the numbers, and a masked number that is NaN still spoils what is summed over it.
/// Each sequence must have separate cells (`kv_unified` off), and the kind of memory must be known.
void wipe_sequence(llama_memory_t memory, llama_seq_id sequence);

/// Whether wipe_sequence() knows this kind of memory; a model without memory has nothing to wipe.
bool can_wipe_sequence(llama_memory_t memory);

}  // namespace tapline
