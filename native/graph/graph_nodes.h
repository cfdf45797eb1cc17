#pragma once

#include <functional>
#include <vector>

#include "base/cancel.h"
#include "base/thread_team.h"
#include "graph/frozen_blocks.h"

namespace tapline {

/// A logit, or a difference of logits, as a linear function of the last block's output at one token.
struct GraphTarget {
  int token = 0;
  std::vector<double> direction;  // [hidden]
  double constant = 0;
  double weight = 1;  // of its influence among the targets
};

/// A neuron or an attention head at one token.
struct GraphNode {
  bool head = false;
  int layer = 0;
  int token = 0;
  int index = 0;  // in its block
  /// A neuron's activation; a head's output in the direction in which it affects the targets, weighted.
  double value = 0;
  std::vector<double> relevance;  // by target: what comes through it in the linear model
  double influence = 0;           // the sum of these, without signs, weighted
};

/// Nodes, and how linear functions of the residual stream read and write them. T is float or double.
template <class T>
struct GraphNodes {
  std::vector<GraphNode> nodes;        // upwards: by block, heads before neurons, by token
  std::vector<std::vector<T>> reads;   // a neuron's, of its MLP's input, [hidden]; a head's, of its output
  std::vector<double> constants;       // of these functions
  std::vector<std::vector<T>> writes;  // what a neuron adds to the stream, [hidden]; a head's is empty
  struct Block {
    std::vector<T> rest;       // [tokens, hidden]: what neurons that are not nodes add
    std::vector<T> constants;  // what biases add
    std::vector<T> rounding;   // what the pass computed and the steps do not
  };
  std::vector<Block> blocks;
  std::vector<std::vector<double>> embeddings;  // by target, [tokens]: what comes from them through all paths
  std::vector<double> rounding;                 // by target, the same of all rounding
  std::vector<double> apart;                    // by layer: see FrozenAttention::apart()
  std::vector<double> ffn_apart;                // by layer: see FrozenMlp::apart()
  std::vector<size_t> tried;                    // nodes whose removal is to be measured
  std::vector<std::vector<float>> losses;       // of these, if they are neurons: see FrozenMlp::losses()
};

struct NodeChoice {
  size_t most = 0;   // nodes
  size_t tried = 0;  // of these, the strongest for the first target
  int first = 0;     // the first token at which there are nodes
};

/// Finds the nodes through which most of the targets' values comes, with attention weights, norms and gates
/// fixed (RelP). `progress` counts blocks, each twice.
template <class T>
GraphNodes<T> find_nodes(const FrozenBlocks& blocks, const std::vector<GraphTarget>& targets,
                         const NodeChoice& choice, ThreadTeam& team, const CancelToken& cancel,
                         const std::function<void(size_t, size_t)>& progress);

}  // namespace tapline
