#include "engine/thinking.h"

#include <algorithm>

namespace tapline {

ThinkingState::ThinkingState(const ThinkingTags& tags) {
  if (tags.ends.empty() || tags.start.empty()) return;
  part_ = Part::kOpen;
  // Before the tag is the role's header.
  const size_t start = tags.answer_prefix.find(tags.start);
  if (start != std::string::npos) read(tags.answer_prefix.substr(start), tags);
}

ThinkingState ThinkingState::after(const std::string& piece, const ThinkingTags& tags) const {
  ThinkingState next = *this;
  next.read(piece, tags);
  return next;
}

void ThinkingState::read(const std::string& text, const ThinkingTags& tags) {
  if (part_ == Part::kAnswer) return;
  text_ += text;
  if (part_ == Part::kOpen) {
    const size_t first = text_.find_first_not_of(" \t\r\n");
    if (first == std::string::npos) return;
    const size_t length = std::min(tags.start.size(), text_.size() - first);
    if (text_.compare(first, length, tags.start, 0, length) != 0) {
      part_ = Part::kAnswer;
      text_.clear();
      return;
    }
    if (length < tags.start.size()) return;
    part_ = Part::kThinking;
    text_.erase(0, first + length);
  }
  size_t longest = 0;
  for (const std::string& end : tags.ends) {
    longest = std::max(longest, end.size());
    if (text_.find(end) == std::string::npos) continue;
    part_ = Part::kAnswer;
    text_.clear();
    return;
  }
  if (text_.size() > longest) text_.erase(0, text_.size() - longest);
}

}  // namespace tapline
