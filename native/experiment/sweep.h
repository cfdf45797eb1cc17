#pragma once

#include <vector>

#include "capture/edit.h"
#include "experiment/passes.h"

namespace tapline {

struct SweepRequest {
  std::vector<std::vector<llama_token>> prompts;
  std::vector<EditPlan> plans;       // each is tried on every prompt
  std::vector<llama_token> targets;  // one a prompt; negative: the baseline's most probable token
  int max_tokens = 32;               // of each greedy continuation
};

/// What one prompt did under one plan of edits, or under none.
struct SweepRow {
  float target_probability = 0;  // after the prompt; NaN where only a broken baseline could say of what
  std::vector<llama_token> continuation;  // greedy; without the end-of-generation token
  bool finite = true;                     // false: some logit was not, and the row ended there
  std::vector<EditEffect> effects;        // one an edit of the plan, over all of its rows
};

struct SweepTrial {
  llama_token target = 0;  // -1 where none was given and the baseline is not finite
  SweepRow baseline;
  std::vector<SweepRow> rows;  // one a plan, in order
};

/// Runs every prompt under every plan of edits, and without any: each prompt is computed once up to the first
/// token that a plan edits, its K/V shared by sequence copy, and all rows of as many prompts as fit are
/// generated in lockstep as one batch a step. A plan of neutral edits is the baseline itself, so its numbers
/// are equal by construction; only the rows' lengths are measured. K/V is kept, so a token generated under an
/// edit stays edited for the tokens after it. Forgets the context's sequence. `progress` counts generated
/// positions.
std::vector<SweepTrial> sweep(Passes& passes, const SweepRequest& request, const CancelToken& cancel,
                              const CountProgress& progress);

}  // namespace tapline
