#include "experiment/checks.h"

namespace tapline {

namespace {

template <class... Parts>
[[noreturn]] void invalid(const Parts&... parts) {
  throw_error(ErrorCode::kInvalidArgument, parts...);
}

std::string point_name(Point point) {
  return std::string("The point ") + name_of(point);
}

void check_point(const Passes& passes, Point point) {
  const BlockPoints::Found& found = passes.stream().points.at(point);
  if (!found.supported) throw Error(ErrorCode::kUnsupportedArchitecture, found.reason);
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
  check_point(passes, point);
  if (Place{0, point}.is_vector() && point != Point::kHeadOut) return;
  invalid("Only points with vectors of the hidden size are possible here, got ", name_of(point), ".");
}

const Site& check_place(const Passes& passes, Place place) {
  check_point(passes, place.point);
  const BlockPoints& points = passes.stream().points;
  const Site& site = points.site(place);
  if (site.node >= 0) return site;
  throw_error(ErrorCode::kUnsupportedArchitecture, "Block ", place.layer, " has no ", name_of(place.point),
              ": it ", points.at(place.point).without[static_cast<size_t>(place.layer)], ".");
}

std::vector<Place> check_places(const Passes& passes, const std::vector<int>& layers,
                                const std::vector<Point>& points) {
  check_layers(passes, layers);
  for (const Point point : points) {
    if (!layers.empty()) check_point(passes, point);
  }
  check_distinct(points, point_name);
  std::vector<Place> places;
  for (const int layer : layers) {
    for (const Point point : points) {
      check_place(passes, {layer, point});
      if (!Place{layer, point}.is_vector())
        invalid(point_name(point), " does not have one vector per token; request it separately.");
      places.push_back({layer, point});
    }
  }
  return places;
}

const Site& check_changeable(const Passes& passes, Place place, const std::vector<int>& heads) {
  check_layers(passes, {place.layer});
  if (!place.is_vector())
    invalid(point_name(place.point), " does not have one vector per token and cannot be changed.");
  const Site& site = check_place(passes, place);
  for (const int head : heads) {
    if (head < 0 || (place.point == Point::kHeadOut && head < site.heads)) continue;
    invalid("Head ", head, " does not exist at ", place.text(/*first_word=*/false), ", which has ",
            site.heads > 0 ? std::to_string(site.heads) : "no heads", ".");
  }
  return site;
}

void check_edits(const Passes& passes, const EditPlan& plan) {
  for (const Edit& edit : plan) {
    const Site& site = check_changeable(passes, edit.place(), edit.heads);
    for (const int head : edit.heads) {
      if (std::count(edit.heads.begin(), edit.heads.end(), head) > 1)
        invalid("An edit lists head ", head, " twice.");
    }
    check_vector(edit, edit.width_of(static_cast<size_t>(site.width), site.heads));
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

}  // namespace tapline
