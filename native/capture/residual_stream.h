#pragma once

#include <string>
#include <vector>

#include "capture/attention_path.h"
#include "capture/block_points.h"
#include "capture/ffn_input_path.h"
#include "capture/lens_recipe.h"
#include "capture/mlp_path.h"
#include "llama.h"
#include "model/model.h"

namespace tapline {

/// The location of each block's output in a model's compute graph, found and proven before any capture.
///
/// A block output is the residual stream after block n: the tensor that the rest of the network reads. Its
/// name proves nothing (nemotron_h gives "l_out" to a branch before its residual add), so the graph is
/// checked: the logits may not depend on tokens by any path around it. A few architectures have a second,
/// documented path around their blocks (see `side_path`); they are listed in a table and tested by `npm run
/// verify:architectures`.
struct ResidualStream {
  bool supported = false;
  std::string reason;               // one sentence, when not supported
  std::vector<std::string> blocks;  // tensor name of each block's output; index = layer
  std::string first_node;           // name of the first node of a graph, where a new micro-batch starts
  std::string side_path;            // other inputs of later blocks, for architectures in the table
  BlockPoints points;               // each proven or rejected separately
  std::vector<AttentionPath> attention_paths;  // from a block's input to attn_out; index = layer
  std::vector<MlpPath> mlp_paths;              // from there, or from mid, to ffn_out
  std::vector<FfnInputPath> ffn_inputs;        // from there to ffn_in
  LensRecipe lens;  // final norm and output head, from the graph after the last block
  /// The output head computes every row (cogvlm). llama.cpp then returns the first rows as the requested
  /// ones, so logits are correct only if all rows are requested.
  bool heads_every_row = false;
  /// Whether a micro-batch may hold several tokens of several sequences. llama.cpp's plamo2 mixes them up.
  bool packs_sequences = true;
};

/// Builds the graph of `ctx`, which was created with `params`, without computing it, and finds the block
/// outputs of `model`. Must not run while the context computes; the next decode rebuilds its graph.
ResidualStream find_residual_stream(llama_context* ctx, const llama_context_params& params,
                                    const Model& model);

}  // namespace tapline
