#pragma once

#include <string>
#include <vector>

namespace tapline {

/// How a chat's template writes where thinking begins and ends, and what it has written of an answer already.
struct ThinkingTags {
  std::string start;
  std::vector<std::string> ends;  // any of them; empty: answers do not think
  std::string answer_prefix;      // the end of the prompt that is the answer's beginning
};

/// Whether an answer thinks or answers, followed token by token. Before it has written anything but the
/// beginning of the opening tag it does neither.
class ThinkingState {
 public:
  ThinkingState() = default;
  explicit ThinkingState(const ThinkingTags& tags);

  bool thinks() const { return part_ == Part::kThinking; }
  bool answers() const { return part_ == Part::kAnswer; }
  /// The state behind one more token.
  ThinkingState after(const std::string& piece, const ThinkingTags& tags) const;

 private:
  enum class Part { kOpen, kThinking, kAnswer };
  void read(const std::string& text, const ThinkingTags& tags);

  Part part_ = Part::kAnswer;
  std::string text_;  // what decides: all of it while open, then as much as a closing tag may begin with
};

}  // namespace tapline
