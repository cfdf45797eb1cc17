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

/// Removes ` until-123` or ` until-123?`, the text before a call, from the end of a rule.
bool cut_prose(std::string& rule) {
  const size_t at = rule.rfind(' ');
  const std::string symbol = " until-";
  if (at == std::string::npos || rule.compare(at, symbol.size(), symbol) != 0) return false;
  const size_t end = rule.back() == '?' ? rule.size() - 1 : rule.size();
  for (size_t i = at + symbol.size(); i < end; ++i) {
    if (!std::isdigit(static_cast<unsigned char>(rule[i]))) return false;
  }
  rule.resize(at);
  return true;
}

/// Whether a rule has only literals, spaces, the answer's beginning and a thought.
bool has_no_prose(const std::string& rule) {
  std::string symbol;
  bool quoted = false;
  for (size_t i = 0; i <= rule.size(); ++i) {
    const char c = i < rule.size() ? rule[i] : ' ';
    if (quoted && c == '\\') {
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && (std::isalnum(static_cast<unsigned char>(c)) || c == '-')) {
      symbol += c;
    } else if (!quoted && !symbol.empty()) {
      if (symbol != "space" && symbol != "start" && symbol != "thought") return false;
      symbol.clear();
    }
  }
  return true;
}

}  // namespace

std::string without_prose(const std::string& grammar) {
  size_t begin = grammar.compare(0, kRoot.size(), kRoot) == 0 ? 0 : grammar.find("\n" + kRoot);
  if (begin != std::string::npos) {
    if (begin > 0) ++begin;
    const size_t end = std::min(grammar.find('\n', begin), grammar.size());
    const std::string root = grammar.substr(begin, end - begin);
    for (std::string calls : {" tool-calls", " tool-call", " tool-call-root"}) {
      if (!ends_with(root, calls)) continue;
      std::string before = root.substr(0, root.size() - calls.size());
      if (ends_with(before, " space")) {
        before.resize(before.size() - std::string(" space").size());
        calls = " space" + calls;
      }
      if (cut_prose(before)) return grammar.substr(0, begin) + before + calls + grammar.substr(end);
      if (has_no_prose(before.substr(kRoot.size() - 1))) return grammar;
    }
  }
  throw std::invalid_argument(
      "tool_choice: calls cannot be forced with this model's chat template, whose answers may begin with "
      "prose; use tool_choice auto.");
}

}  // namespace tapline
