#pragma once

#include <cstdint>
#include <vector>

#include "capture/edit.h"
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
  size_t width = 0;           // n_embd, or of what heads read their own
  std::vector<float> states;  // [rows, width]; empty unless kept
  std::vector<float> norms;   // [rows], L2
  TopTokens lens;             // empty unless asked for and supported
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
  llama_token lens_target = -1;  // whose rank in the lens is wanted for every captured row; negative: none
  bool lens_answer = false;  // or that of the pass's own answer for the last row, where next_top gives one
  MeasureRequest measure;
  int next_top = 0;          // top k of the next token after the last one; 0: none
  bool keep_logits = false;  // the next token's logits
  /// Of a text in one pass, from its beginning.
  AttentionRequest attention;
  /// Layers whose router is read at every token; distinct.
  std::vector<int> routing;
  /// A token id for each token, whose log-probability after it is wanted; negative: none. Empty: nowhere.
  /// Every such row takes a head, so that no other answer may be asked for in the same pass.
  std::vector<llama_token> scored;
  int scored_top = 0;       // top k of the tokens in their place; 0: none
  bool early_exit = false;  // compute no block after the deepest captured one, when no head is wanted
  EditPlan edits;  // the tokens so far, these included, are the prompt; their places are among those captured
};

struct AdvanceResult {
  std::vector<LayerStates> layers;                   // layer by layer, then point by point, as asked for
  std::vector<LayerStates> measured;                 // in the order asked for; no states, lens of later rows
  std::vector<LayerAttention> attention;             // in the order asked for
  std::vector<LayerRouting> routing;                 // in the order asked for
  TopTokens next;                                    // one row
  std::vector<float> logits;                         // [n_vocab]
  std::vector<EditEffect> effects;                   // one an edit
  std::vector<double> log_probabilities;             // one a token where `scored`; 0 where none was wanted
  std::vector<int32_t> scored_top_ids;               // [tokens, scored_top], most probable first
  std::vector<double> scored_top_log_probabilities;  // [tokens, scored_top]
};

/// Continues the context's one sequence with 1..n_batch() tokens. Call in chunks; the K/V cache is kept.
/// Throws kCompute where a block output or a probability is not finite.
///
/// Logits are the same bits whatever is captured. No output head is computed for rows that nobody asked for:
/// all rows of the last block next to an answer take a second pass on most architectures. With early_exit a
/// sequence can only be continued to the same depth, until reset().
AdvanceResult advance(Passes& passes, const AdvanceRequest& request, const CancelToken& cancel);

}  // namespace tapline
