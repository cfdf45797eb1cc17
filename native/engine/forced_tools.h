#pragma once

#include <string>

namespace tapline {

/// The grammar of an answer that must call a tool, without the prose that llama.cpp's grammar allows before
/// the call: a model that starts with prose might never call one. Throws std::invalid_argument for a
/// different form of grammar.
std::string without_prose(const std::string& grammar);

}  // namespace tapline
