#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "capture/graph_view.h"
#include "capture/place.h"

namespace tapline {

/// The location of a place in a graph. The names of many tensors are numbers, which may change with the
/// number of tokens, so a place is identified by its distance from a named node. During each pass, the route
/// from its block's output confirms it.
struct Site {
  std::string anchor;  // name of a node that occurs once
  int offset = 0;      // nodes from there
  int node = -1;    // in the graph in which it was found, which determines the order; -1: not in this block
  int width = 0;    // numbers per token; for the router, the number of chosen experts
  int heads = 0;    // for attention and head_out
  int experts = 0;  // for the router, the number of experts
  std::vector<uint8_t> route;   // operands, node by node, from the block's output; empty: the output
  std::vector<uint8_t> choice;  // for the router: operands from the weights to the sorted ids of all experts
};

/// The tensor at the end of `route`; null if it ends before, or crosses a copy between devices.
const ggml_tensor* follow(const ggml_tensor* from, const std::vector<uint8_t>& route);

/// The points of every block, proven from the graph: a block's output must be its input plus the outputs of
/// its two halves, by additions in the graph. Names prove nothing.
struct BlockPoints {
  struct Found {
    bool supported = false;
    std::string reason;       // one sentence, when not supported
    std::vector<Site> sites;  // index = layer
    /// Why some blocks lack it, such as a hybrid's recurrent blocks. Index = layer; or empty.
    std::vector<std::string> without;
  };
  std::array<Found, kPointCount> found;
  bool parallel = false;  // both halves read the block's input (GPT-J, Falcon)
  // The outputs of the halves are normalised (sandwich norms) or scaled before the addition; points are after
  // that.
  bool normed = false;
  bool scaled = false;

  const Found& at(Point point) const { return found[static_cast<size_t>(point)]; }
  Found& at(Point point) { return found[static_cast<size_t>(point)]; }
  const Site& site(Place place) const { return at(place.point).sites[static_cast<size_t>(place.layer)]; }
};

/// Finds the points of blocks whose outputs are the nodes `blocks`. `subject` begins a sentence: "The
/// architecture 'x' ". `is_token_leaf` recognises the leaves through which tokens enter.
BlockPoints find_block_points(const GraphView& graph, const std::vector<int>& blocks, int n_embd,
                              const std::string& subject, bool (*is_token_leaf)(const ggml_tensor*));

}  // namespace tapline
