#pragma once

#include <string>

namespace tapline {

/// The grammar of an answer that has to call a tool, without the prose that llama.cpp's own lets come before
/// the call: a model that begins to write need never come to one. Throws std::invalid_argument where the
/// grammar has another shape.
std::string without_prose(const std::string& grammar);

}  // namespace tapline
