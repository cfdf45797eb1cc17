#pragma once

#include <cstdint>
#include <vector>

#include "capture/edit.h"
#include "experiment/passes.h"

namespace tapline {

/// A row with logits: its token, and the residual stream between the halves of the last block.
struct TailRow {
  llama_token token = 0;
  llama_seq_id sequence = 0;
  std::vector<float> mid;
  const EditPlan* edits = nullptr;  // of its text; those after the middle of the last block are applied
  int32_t index = 0;                // in its text, whose length decides on negative positions
  int32_t length = 0;
};

/// Logits of rows whose middle of the last block is known. A pass computes the second half of the last block
/// for rows with logits only, so these rows by themselves, with that middle in place, have the bits of a pass
/// over their whole texts. passes.logits(i) is that of rows[i]; `sink` gets the places of `read`, points of
/// the last block after its middle, with the indices of `rows`. Clears the context.
void run_tail(Passes& passes, const std::vector<TailRow>& rows, const std::vector<Place>& read,
              const BlockTap::Sink& sink, const CancelToken& cancel);

/// Whether that holds for this model: compared once, to the bit, on some tokens of a text (at least two).
/// Clears the context.
bool has_tail(Passes& passes, const std::vector<llama_token>& text, const CancelToken& cancel);

}  // namespace tapline
