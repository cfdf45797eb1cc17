#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>

namespace tapline {

/// The points of a block that can be read, in the order of computation. All but attention and router have one
/// vector per token, of n_embd numbers or of the heads' outputs, and can be changed.
enum class Point : uint8_t {
  kBlockIn,    // the residual stream before the block
  kAttention,  // how much each token reads of each other, by head, after the softmax
  kHeadOut,    // the concatenated outputs of the heads, before the output projection
  kAttnOut,    // the first half's addition to the stream: attention, or another layer that mixes tokens
  kMid,        // the stream between the two halves
  kFfnIn,      // the second half's input: the output of its norm
  kRouter,     // the chosen experts of each token, and their weights
  kFfnOut,     // the second half's addition: the MLP, or the experts
  kBlockOut,   // the stream after the block
};
constexpr size_t kPointCount = 9;
/// In the order of the enumeration.
constexpr std::array<const char*, kPointCount> kPointNames{
    "block_in", "attention", "head_out", "attn_out", "mid", "ffn_in", "router", "ffn_out", "block_out"};

inline const char* name_of(Point point) {
  return kPointNames[static_cast<size_t>(point)];
}

/// A point of a block.
struct Place {
  int layer = 0;
  Point point = Point::kBlockOut;

  /// The place where the same tensor is computed: a block's input is the output of the previous block.
  Place computed_at() const {
    return point == Point::kBlockIn && layer > 0 ? Place{layer - 1, Point::kBlockOut} : *this;
  }
  /// Whether there is one vector per token here, of n_embd numbers or of the heads' outputs.
  bool is_vector() const { return point != Point::kAttention && point != Point::kRouter; }
  bool operator<(const Place& other) const {
    return std::tie(layer, point) < std::tie(other.layer, other.point);
  }
  bool operator==(const Place& other) const { return layer == other.layer && point == other.point; }

  /// For a sentence: "The output of block 3", "attn_out of block 3".
  std::string text(bool first_word = true) const {
    const std::string of = " of block " + std::to_string(layer);
    if (point == Point::kBlockOut) return (first_word ? "The output" : "the output") + of;
    return name_of(point) + of;
  }
};

}  // namespace tapline
