#include "engine/forced_tools.h"

#include <algorithm>
#include <cctype>
#include <stdexcept>

namespace tapline {

namespace {

const std::string kRoot = "root ::= ";

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

/// Cuts ` until-123?`, text up to where a call begins, off the end of a rule.
bool cut_prose(std::string& rule) {
  const size_t at = rule.rfind(' ');
  const std::string symbol = " until-";
  if (at == std::string::npos || rule.compare(at, symbol.size(), symbol) != 0 || rule.back() != '?')
    return false;
  for (size_t i = at + symbol.size(); i + 1 < rule.size(); ++i) {
    if (!std::isdigit(static_cast<unsigned char>(rule[i]))) return false;
  }
  rule.resize(at);
  return true;
}

}  // namespace

std::string without_prose(const std::string& grammar) {
  size_t begin = grammar.compare(0, kRoot.size(), kRoot) == 0 ? 0 : grammar.find("\n" + kRoot);
  if (begin != std::string::npos) {
    if (begin > 0) ++begin;
    const size_t end = std::min(grammar.find('\n', begin), grammar.size());
    const std::string root = grammar.substr(begin, end - begin);
    for (const std::string calls : {" tool-calls", " tool-call"}) {
      if (!ends_with(root, calls)) continue;
      std::string before = root.substr(0, root.size() - calls.size());
      if (cut_prose(before)) return grammar.substr(0, begin) + before + calls + grammar.substr(end);
    }
  }
  throw std::invalid_argument(
      "tool_choice: calls cannot be forced with this model's chat template, whose answers may begin with "
      "prose; ask with tool_choice auto.");
}

}  // namespace tapline
