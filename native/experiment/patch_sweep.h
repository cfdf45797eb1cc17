#pragma once

#include <cstdint>
#include <vector>

#include "capture/place.h"
#include "llama.h"

namespace tapline {

/// Two prompts of equal length, and the places at which the states of one are put into the run of the other.
struct PatchSweepRequest {
  std::vector<llama_token> clean;
  std::vector<llama_token> corrupted;
  bool denoise = true;      // clean states into the corrupted run; false: corrupted ones into the clean run
  std::vector<int> layers;  // distinct; any order
  std::vector<Point> points{Point::kBlockOut};  // of each of these layers; distinct
  std::vector<int> positions;                   // distinct token indices; any order
  llama_token target = -1;                      // negative: the clean run's most probable token
  llama_token foil = -1;                        // negative: the corrupted run's
  /// [layers, points, n_embd]: for each place the direction of a random change that is as long as the
  /// patch's; empty: no such control.
  std::vector<float> controls;
};

/// Logit differences: the target's logit less the foil's, after the prompt. What is of one site each is
/// [layers, points, positions], in the order asked for.
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
};

}  // namespace tapline
