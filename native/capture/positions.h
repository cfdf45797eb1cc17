#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace tapline {

/// Which tokens of a sequence: parts of it, cut down to ranges of token indices.
struct Positions {
  /// Token indices from the start of the sequence, both ends included. A negative one counts from the end of
  /// the prompt: -1 is its last token. The greatest integer reaches to the end of the text, however long.
  struct Range {
    int32_t first = 0;
    int32_t last = std::numeric_limits<int32_t>::max();
  };

  /// Of a chat that thinks before it answers: which of the two its generated tokens must belong to. Only who
  /// follows an answer's text knows; contains() leaves it aside.
  enum class Part { kAny, kThinking, kAnswer };

  bool prompt = true;
  bool generated = true;
  Part part = Part::kAny;
  std::vector<Range> ranges;  // any of them; empty: no limit

  /// Whether token `index` of a sequence with `n_prompt` prompt tokens is one of them.
  bool contains(int32_t index, int32_t n_prompt) const;
  /// The first such token of the prompt, n_prompt where there is none: what comes before it can be shared
  /// with other sequences.
  int32_t first_in_prompt(int32_t n_prompt) const;
  /// The first range that ends before it begins, counted in such a prompt; null if there is none.
  const Range* reversed(int32_t n_prompt) const;
  /// A range's end as an index from the start of the sequence.
  static int32_t from_start(int32_t index, int32_t n_prompt);
  bool operator==(const Positions& other) const;
};

}  // namespace tapline
