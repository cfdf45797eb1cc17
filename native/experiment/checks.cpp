#include "experiment/checks.h"

#include <cstdint>
#include <cstring>

namespace tapline {

namespace {

template <class... Parts>
[[noreturn]] void invalid(const Parts&... parts) {
  throw_error(ErrorCode::kInvalidArgument, parts...);
}

std::string point_name(Point point) {
  return std::string("The point ") + name_of(point);
}

}  // namespace

std::vector<int> check_layers(const Passes& passes, const std::vector<int>& layers) {
  if (!layers.empty() && !passes.stream().supported)
    throw Error(ErrorCode::kUnsupportedArchitecture, passes.stream().reason);
  std::vector<int> sorted = layers;
  std::sort(sorted.begin(), sorted.end());
  for (const int layer : sorted) passes.model().check_layer(layer);
  check_distinct(sorted, [](int layer) { return "Layer " + std::to_string(layer); });
  return sorted;
}

void check_hidden(const Passes& passes, Point point) {
  check_point(passes.stream(), point);
  if (Place{0, point}.is_vector() && point != Point::kHeadOut) return;
  invalid("Only points with vectors of the hidden size are possible here, got ", name_of(point), ".");
}

std::vector<Place> check_places(const Passes& passes, const std::vector<int>& layers,
                                const std::vector<Point>& points) {
  check_layers(passes, layers);
  for (const Point point : points) {
    if (!layers.empty()) check_point(passes.stream(), point);
  }
  check_distinct(points, point_name);
  std::vector<Place> places;
  for (const int layer : layers) {
    for (const Point point : points) {
      check_place(passes.stream(), {layer, point});
      if (!Place{layer, point}.is_vector())
        invalid(point_name(point), " does not have one vector per token; request it separately.");
      places.push_back({layer, point});
    }
  }
  return places;
}

const Site& check_place(const Passes& passes, Place place) {
  return check_place(passes.stream(), place);
}

const Site& check_changeable(const Passes& passes, Place place, const std::vector<int>& heads) {
  check_layers(passes, {place.layer});
  return check_changeable(passes.stream(), place, heads);
}

void check_edits(const Passes& passes, const EditPlan& plan) {
  for (const Edit& edit : plan) {
    check_layers(passes, {edit.layer});
    check_edit(passes.stream(), edit);
  }
}

void check_tokens(const Passes& passes, const std::vector<llama_token>& tokens) {
  if (tokens.empty()) invalid("At least one token is needed.");
  passes.model().check_tokens(tokens);
}

void check_in_vocabulary(const Passes& passes, const std::string& what,
                         const std::vector<llama_token>& tokens) {
  for (const llama_token token : tokens) {
    if (token < passes.info().n_vocab) continue;
    invalid(what, " ", token, " is outside the vocabulary of ", passes.info().n_vocab, " tokens.");
  }
}

void check_targets(const Passes& passes, const std::vector<llama_token>& tokens) {
  const auto unknown = [&](llama_token token) { return token >= passes.info().n_vocab; };
  if (std::any_of(tokens.begin(), tokens.end(), unknown))
    invalid("A target token is outside the vocabulary.");
}

void check_causal(const Passes& passes) {
  if (passes.causal()) return;
  throw_error(ErrorCode::kUnsupportedArchitecture, "The architecture '", passes.info().architecture,
              "' does not generate text token by token.");
}

bool all_finite(const float* values, size_t count) {
  // The exponent of infinities and NaN has all bits set: one more, and the sum reaches the sign's bit. Unlike
  // a sum of floats, compilers compute this on several numbers at a time.
  uint32_t reached = 0;
  for (size_t i = 0; i < count; ++i) {
    uint32_t bits = 0;
    std::memcpy(&bits, values + i, sizeof(bits));
    reached |= (bits & 0x7fffffffU) + 0x00800000U;
  }
  return (reached >> 31U) == 0;
}

}  // namespace tapline
