#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace tapline {

/// A selection of a sequence's tokens: parts of it, limited to ranges of token indices.
struct Positions {
  /// Token indices from the start of the sequence, both ends included. Negative ones count from the end of
  /// the prompt: -1 is its last token. The greatest integer means the end of the text.
  struct Range {
    int32_t first = 0;
    int32_t last = std::numeric_limits<int32_t>::max();
  };

  /// For chats with thinking: the part to which generated tokens must belong. That depends on the text, so
  /// contains() ignores it.
  enum class Part { kAny, kThinking, kAnswer };

  bool prompt = true;
  bool generated = true;
  Part part = Part::kAny;
  std::vector<Range> ranges;  // any of them; empty: no limit

  /// Whether token `index` of a sequence with `n_prompt` prompt tokens is selected.
  bool contains(int32_t index, int32_t n_prompt) const;
  /// The first selected token of the prompt, or n_prompt: earlier tokens can be shared with other sequences.
  int32_t first_in_prompt(int32_t n_prompt) const;
  /// The first range that ends before it begins, for this length of prompt, or null.
  const Range* reversed(int32_t n_prompt) const;
  /// A range's end as an index from the start of the sequence.
  static int32_t from_start(int32_t index, int32_t n_prompt);
  bool operator==(const Positions& other) const;
};

}  // namespace tapline
