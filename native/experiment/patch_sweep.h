#pragma once

#include <cstdint>
#include <functional>
#include <tuple>
#include <vector>

#include "experiment/passes.h"

namespace tapline {

/// What is put in: a point of a block, or one head's part of what heads read.
struct PatchPlace {
  Place place;
  int head = -1;  // of head_out; negative: the whole row

  bool operator<(const PatchPlace& other) const {
    return std::tie(place, head) < std::tie(other.place, other.head);
  }
};

/// Two prompts, and the places at which the states of one are put into the run of the other.
struct PatchSweepRequest {
  std::vector<llama_token> clean;
  std::vector<llama_token> corrupted;
  bool denoise = true;  // clean states into the corrupted run; false: corrupted ones into the clean run
  std::vector<PatchPlace> places;  // distinct; any order
  /// Distinct token indices in any order; what stands at one in the clean prompt belongs to what stands at
  /// the same entry's in the corrupted one.
  std::vector<int> clean_positions;
  std::vector<int> corrupted_positions;
  llama_token target = -1;  // negative: the clean run's most probable token
  llama_token foil = -1;    // negative: the corrupted run's
  /// Place after place as many numbers as it has: the direction of a random change that is as long as the
  /// patch's; empty: no such control.
  std::vector<float> controls;
};

/// What a sweep has found out so far.
struct PatchGrowth {
  double clean = 0;
  double corrupted = 0;
  std::vector<double> patched;  // as in the result; NaN where it is still to be computed
};

/// Called with how many sites of how many are done; the last argument makes what is known of them when it is
/// called.
using PatchProgress = std::function<void(size_t, size_t, const std::function<PatchGrowth()>&)>;

/// Logit differences: the target's logit less the foil's, after the prompt. What is of one site each is
/// [places, positions], in the order asked for.
struct PatchSweepResult {
  llama_token target = -1;
  llama_token foil = -1;
  double clean = 0;
  double corrupted = 0;
  /// Of the run that is patched, with a row of its own put back: how far batches alone move a number.
  double restored = 0;
  std::vector<double> patched;
  std::vector<double> control;        // empty without controls
  std::vector<double> change_length;  // L2 of the change of the row; NaN where nothing reads that row
  std::vector<double> row_length;     // L2 of the row before it; NaN likewise
  int64_t computed_sites = 0;         // the others change nothing, by construction
  int64_t computed_tokens = 0;        // that these took, without the two runs themselves
  int64_t restored_tokens = 0;        // of them, those of the row put back; 0 if there was none
};

/// Puts single rows of one prompt's blocks, or single heads' parts of them, into the run of another prompt, a
/// site at a time: what does the model answer then? Both prompts are computed once. A site at token p has the
/// run's K/V before p and computes the tokens from p on, in batches of many sites. Where that would change
/// nothing, because nothing reads the row or because both runs hold the same bits there, the answer is the
/// run's own. The context needs twice the prompt's tokens, batches of at least the prompt's, and two
/// sequences; more of each lets more sites share a batch. Forgets the context's sequence. `progress` counts
/// the sites that are computed.
PatchSweepResult patch_sweep(Passes& passes, const PatchSweepRequest& request, const CancelToken& cancel,
                             const PatchProgress& progress);

}  // namespace tapline
