#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "capture/graph_view.h"
#include "capture/place.h"

namespace tapline {

/// Where a place is met while a graph computes. Many tensors have no name but their number in the graph,
/// which another number of tokens may change, so a place is so many nodes behind one that has a name of its
/// own; that it is the right one is seen once more in the graph that computes, by the way to it from its
/// block's output.
struct Site {
  std::string anchor;  // name of a node that occurs once
  int offset = 0;      // nodes from there
  int node = -1;       // in the graph in which it was found; places are met in this order; -1: none here
  int width = 0;       // numbers of a token; of the router, the experts that are chosen for one
  int heads = 0;       // of attention and of what heads read
  int experts = 0;     // of the router, those to choose from
  /// Which operand, node by node, from the block's output back to it; empty: that itself.
  std::vector<uint8_t> route;
  /// Of the router, whose place holds the weights: the way on to all experts' ids, best first.
  std::vector<uint8_t> choice;
};

/// The tensor that `route` leads to from `from`; null where it leads nowhere, or over a copy between devices.
const ggml_tensor* follow(const ggml_tensor* from, const std::vector<uint8_t>& route);

/// Where the points of every block are, as far as they can be proven from the graph: a block's output must be
/// its input and what its two halves add to it, by additions that the graph shows. Names are no proof.
struct BlockPoints {
  struct Found {
    bool supported = false;
    std::string reason;       // one sentence, when not supported
    std::vector<Site> sites;  // index = layer
    /// Why single blocks have it not, where others do: a hybrid's recurrent blocks. Index = layer; or empty.
    std::vector<std::string> without;
  };
  std::array<Found, kPointCount> found;
  /// Both halves read the block's input, so that the output is the input and what both add (GPT-J, Falcon).
  bool parallel = false;
  /// What is added has gone through a norm (sandwich norms), or was scaled: what the stream gets is what is
  /// met.
  bool normed = false;
  bool scaled = false;

  const Found& at(Point point) const { return found[static_cast<size_t>(point)]; }
  Found& at(Point point) { return found[static_cast<size_t>(point)]; }
  const Site& site(Place place) const { return at(place.point).sites[static_cast<size_t>(place.layer)]; }
};

/// Looks for the points of blocks whose outputs are the nodes `blocks`. `subject` begins a sentence:
/// "The architecture 'x' ". `is_token_leaf` tells the leaves through which tokens enter.
BlockPoints find_block_points(const GraphView& graph, const std::vector<int>& blocks, int n_embd,
                              const std::string& subject, bool (*is_token_leaf)(const ggml_tensor*));

}  // namespace tapline
