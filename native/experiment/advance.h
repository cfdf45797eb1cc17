#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "capture/edit.h"
#include "capture/lens_reading.h"
#include "capture/top_tokens.h"
#include "experiment/attention.h"
#include "experiment/passes.h"
#include "experiment/routing.h"

namespace tapline {

/// Rows of one point of one block.
struct LayerStates {
  int layer = 0;
  Point point = Point::kBlockOut;
  size_t rows = 0;
  size_t width = 0;           // n_embd, or that of the heads' outputs
  std::vector<float> states;  // [rows, width]; empty unless requested
  std::vector<float> norms;   // [rows], L2
  LensReading lens;           // empty unless requested and supported
  LensReading translated;     // through this layer's translator; empty without one
};

/// Readings of captured rows beyond the most probable tokens of the logit lens.
struct LensExtras {
  std::map<int, Translator> translators;  // by layer, for its block output
  bool measures = false;                  // entropies, and divergences from the last block's output
};

/// Layers whose block outputs are measured and not returned: norms of every row, the lens of later rows.
struct MeasureRequest {
  std::vector<int> layers;  // distinct
  uint32_t lens_from = 0;   // first token of the pass that the lens reads
  int lens_top = 0;         // top k of the logit lens; 0: none
};

struct AdvanceRequest {
  std::vector<llama_token> tokens;
  std::vector<int> layers;                      // distinct; any order
  std::vector<Point> points{Point::kBlockOut};  // of each of these layers; distinct
  bool all_rows = true;                         // every token's row, or the last token's only
  bool keep_states = true;                      // return the states, or only norms and lens
  int lens_top = 0;  // top k of the logit lens for every captured row of the residual stream; 0: none
  llama_token lens_target = -1;  // its rank in the lens is computed for every captured row; negative: none
  std::optional<LensExtras> lens_extras;  // all places are read together then; needs lens_top and states
  bool lens_answer = false;  // or the rank of the predicted next token, for the last row; needs next_top
  MeasureRequest measure;
  int next_top = 0;            // top k of the next token after the last one; 0: none
  bool keep_logits = false;    // the next token's logits
  AttentionRequest attention;  // of a text in one pass, from its beginning
  std::vector<int> routing;    // distinct layers whose router is read at every token
  /// For each token, the token whose log-probability after it is computed; negative: none. Every such row
  /// needs the head, so the pass cannot return other results.
  std::vector<llama_token> scored;
  int scored_top = 0;       // top k at the same positions; 0: none
  bool early_exit = false;  // stop after the deepest captured block, unless the head is needed
  EditPlan edits;
  uint32_t prompt = 0;  // for the edits, how many tokens are the prompt; 0: the tokens so far, with these
};

struct AdvanceResult {
  std::vector<LayerStates> layers;    // layer by layer, then point by point, in the order of the request
  std::vector<LayerStates> measured;  // the same of `measure`: no states, the lens of later rows
  std::vector<LayerAttention> attention;
  std::vector<LayerRouting> routing;
  TopTokens next;                                    // one row
  std::vector<float> logits;                         // [n_vocab]
  std::vector<EditEffect> effects;                   // one per edit
  std::vector<double> log_probabilities;             // of `scored`, one per token; 0 for none
  std::vector<int32_t> scored_top_ids;               // [tokens, scored_top], most probable first
  std::vector<double> scored_top_log_probabilities;  // [tokens, scored_top]
};

/// Continues the context's sequence with 1..n_batch() tokens, keeping its K/V cache. Throws kCompute if a
/// block output or a probability is not finite.
///
/// Captures do not change the bits of logits. The output head is computed only for requested rows: all rows
/// of the last block together with an answer need a second pass on most architectures. After early_exit a
/// sequence can only be continued to the same depth, until reset().
AdvanceResult advance(Passes& passes, const AdvanceRequest& request, const CancelToken& cancel);

}  // namespace tapline
