#pragma once

#include <string>
#include <vector>

#include "capture/block_points.h"
#include "capture/lens_recipe.h"
#include "llama.h"
#include "model/model.h"

namespace tapline {

/// Where each block's output lives in a model's compute graph, found and proven before anything is captured.
///
/// A block output is one residual stream's state after block n: the tensor that the rest of the network
/// reads. Its name is no proof (nemotron_h gives "l_out" to a branch before its residual add), so it is
/// checked in the graph: of everything computed from the tokens, nothing may reach the logits past it. A few
/// architectures carry a second, documented path around their blocks (see `side_path`); those are named in
/// one table and covered by `npm run verify:architectures`.
struct ResidualStream {
  bool supported = false;
  std::string reason;               // one sentence, when not supported
  std::vector<std::string> blocks;  // tensor name of each block's output; index = layer
  std::string first_node;           // name of the first node of a graph: a new micro-batch starts there
  std::string side_path;            // what else reaches the later blocks, for architectures in the table
  BlockPoints points;               // inside the blocks and around them, each proven or refused by itself
  LensRecipe lens;                  // final norm and output head, as found behind the last block
  /// The output head computes every row, whichever were asked for (cogvlm). llama.cpp then takes the first
  /// rows for the ones that were asked for, so that logits are right only when all rows are.
  bool heads_every_row = false;
  /// Whether a micro-batch may hold several tokens of several sequences. llama.cpp's plamo2 mixes them up.
  bool packs_sequences = true;
};

/// Builds the graph of `ctx`, which was made with `params`, without computing it and looks for the block
/// outputs of `model`. Must not run while the context computes; the next decode rebuilds its graph.
ResidualStream find_residual_stream(llama_context* ctx, const llama_context_params& params,
                                    const Model& model);

}  // namespace tapline
