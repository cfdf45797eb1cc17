#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>

namespace tapline {

/// Where a block's numbers can be looked at, in the order in which a block computes them. All but the
/// attention and the router are one vector a token, of n_embd numbers or of the heads' own, and can be
/// changed.
enum class Point : uint8_t {
  kBlockIn,    // the residual stream before the block
  kAttention,  // how much each token reads of each other, by head, after the softmax
  kHeadOut,    // what each head read, side by side, before the output projection
  kAttnOut,    // what its first half adds to the stream: attention, or what mixes tokens in its place
  kMid,        // the stream between the two halves
  kRouter,     // the experts that were chosen for each token, and their weights
  kFfnOut,     // what its second half adds: the MLP, or the experts
  kBlockOut,   // the stream behind the block
};
constexpr size_t kPointCount = 8;
/// In the order of the enumeration.
constexpr std::array<const char*, kPointCount> kPointNames{"block_in", "attention", "head_out", "attn_out",
                                                           "mid",      "router",    "ffn_out",  "block_out"};

inline const char* name_of(Point point) {
  return kPointNames[static_cast<size_t>(point)];
}

/// A point of a block.
struct Place {
  int layer = 0;
  Point point = Point::kBlockOut;

  /// The place where the same tensor is computed: a block's input is the output of the block before it.
  Place computed_at() const {
    return point == Point::kBlockIn && layer > 0 ? Place{layer - 1, Point::kBlockOut} : *this;
  }
  /// Whether there is one vector a token here, of n_embd numbers or of the heads' own.
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
