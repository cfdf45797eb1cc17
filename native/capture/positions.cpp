#include "capture/positions.h"

#include <algorithm>

namespace tapline {

int32_t Positions::from_start(int32_t index, int32_t n_prompt) {
  return index < 0 ? index + n_prompt : index;
}

const Positions::Range* Positions::reversed(int32_t n_prompt) const {
  const auto found = std::find_if(ranges.begin(), ranges.end(), [&](const Range& range) {
    return from_start(range.first, n_prompt) > from_start(range.last, n_prompt);
  });
  return found == ranges.end() ? nullptr : &*found;
}

bool Positions::contains(int32_t index, int32_t n_prompt) const {
  if (!(index < n_prompt ? prompt : generated)) return false;
  return ranges.empty() || std::any_of(ranges.begin(), ranges.end(), [&](const Range& range) {
           return index >= from_start(range.first, n_prompt) && index <= from_start(range.last, n_prompt);
         });
}

int32_t Positions::first_in_prompt(int32_t n_prompt) const {
  for (int32_t index = 0; index < n_prompt; ++index) {
    if (contains(index, n_prompt)) return index;
  }
  return n_prompt;
}

bool Positions::operator==(const Positions& other) const {
  const auto same = [](const Range& a, const Range& b) { return a.first == b.first && a.last == b.last; };
  return prompt == other.prompt && generated == other.generated && part == other.part &&
         ranges.size() == other.ranges.size() &&
         std::equal(ranges.begin(), ranges.end(), other.ranges.begin(), same);
}

}  // namespace tapline
