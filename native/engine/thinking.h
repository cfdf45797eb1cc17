#pragma once

#include <string>
#include <vector>

namespace tapline {

/// The thinking tags of a chat template, and the beginning of the answer in its prompt.
struct ThinkingTags {
  std::string start;
  std::vector<std::string> ends;  // any of them; empty: answers do not think
  std::string answer_prefix;      // the end of the prompt that belongs to the answer
};

/// Tracks whether an answer is thinking or answering, token by token. It is neither while there is only the
/// beginning of the opening tag.
class ThinkingState {
 public:
  ThinkingState() = default;
  explicit ThinkingState(const ThinkingTags& tags);

  bool thinks() const { return part_ == Part::kThinking; }
  bool answers() const { return part_ == Part::kAnswer; }
  /// The state after one more token.
  ThinkingState after(const std::string& piece, const ThinkingTags& tags) const;

 private:
  enum class Part { kOpen, kThinking, kAnswer };
  void read(const std::string& text, const ThinkingTags& tags);

  Part part_ = Part::kAnswer;
  std::string text_;  // while open, all text; then the longest possible beginning of a closing tag
};

}  // namespace tapline
