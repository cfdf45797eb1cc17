#include "engine/live_check.h"

#include "base/error.h"
#include "capture/edit_checks.h"

namespace tapline {

namespace {

template <class... Parts>
[[noreturn]] void refuse(const Parts&... parts) {
  throw_error(ErrorCode::kInvalidArgument, parts...);
}

void check_width(const char* what, size_t values, size_t n_embd) {
  if (values == n_embd) return;
  refuse(what, " has ", values, " values; the hidden size is ", n_embd, ".");
}

/// An index into a list of `count`, or -1 if `none` is allowed.
void check_index(const char* what, int index, size_t count, bool none) {
  if (index >= (none ? -1 : 0) && index < static_cast<int>(count)) return;
  refuse(what, " is entry ", index, " of a list of ", count, ".");
}

/// Every watched layer must have the point, with rows of one width.
void check_watched_places(const LiveWatch& watch, const ResidualStream& stream) {
  if (!watch.heads.empty() && watch.point != Point::kHeadOut)
    refuse("Heads are read at head_out only, not at ", name_of(watch.point), ".");
  int width = 0;
  for (const int layer : watch.layers) {
    const Place place{layer, watch.point};
    const Site& site = check_changeable(stream, place, watch.heads);
    if (width != 0 && site.width != width)
      refuse("Layers ", watch.layers.front(), " and ", layer, " have rows of different widths at ",
             name_of(watch.point), "; watch them in separate requests.");
    width = site.width;
  }
  const bool in_stream =
      watch.point == Point::kBlockIn || watch.point == Point::kMid || watch.point == Point::kBlockOut;
  if (watch.lens_top > 0 && !stream.lens.supported) refuse(stream.lens.reason);
  if (watch.lens_top > 0 && !in_stream)
    refuse("The lens reads the residual stream (block_in, mid, block_out), not ", name_of(watch.point), ".");
}

}  // namespace

size_t watched_width(const LiveWatch& watch, const ResidualStream& stream, int n_embd) {
  if (watch.point != Point::kHeadOut || watch.layers.empty()) return static_cast<size_t>(n_embd);
  const Site& site = stream.points.site({watch.layers.front(), watch.point});
  const auto width = static_cast<size_t>(site.width);
  return watch.heads.empty() ? width : width / static_cast<size_t>(site.heads) * watch.heads.size();
}

void check_live_plan(const LivePlan& plan, const ResidualStream& stream, int n_layer, size_t n_embd) {
  const auto check_layer = [n_layer](int layer) {
    if (layer >= 0 && layer < n_layer) return;
    throw_error(ErrorCode::kLayerOutOfRange, "Layer ", layer, " does not exist: the model has layers 0 to ",
                n_layer - 1, ".");
  };
  for (const Edit& edit : plan.edits) {
    check_layer(edit.layer);
    check_edit(stream, edit);
  }
  if (plan.gates.size() != plan.edits.size() || plan.labels.size() != plan.edits.size())
    refuse("A plan of ", plan.edits.size(), " edits needs the same number of gates and labels.");
  for (const int gate : plan.gates) check_index("A gate", gate, plan.conditions.size(), /*none=*/true);
  check_index("The stop condition", plan.stop, plan.conditions.size(), /*none=*/true);
  for (const LiveCondition& condition : plan.conditions) {
    check_index("A condition's probe", static_cast<int>(condition.probe), plan.probes.size(), /*none=*/false);
    if (condition.tokens < 1) refuse("A condition needs at least 1 token, got ", condition.tokens, ".");
  }
  const auto check_place_of = [&](const Place& place) {
    check_layer(place.layer);
    if (place.point == Point::kHeadOut) refuse("head_out has no rows of the hidden size.");
    check_changeable(stream, place, {});
  };
  for (const LiveProbe& probe : plan.probes) {
    check_place_of(probe.place);
    check_width("A probe", probe.weight.size(), n_embd);
  }
  for (const int layer : plan.watch.layers) check_layer(layer);
  check_watched_places(plan.watch, stream);
  if (!plan.watch.lenses.empty() && (plan.watch.lens_top == 0 || plan.watch.point != Point::kBlockOut))
    refuse("Saved lenses need the lens at block_out.");
  for (const LiveLens& lens : plan.watch.lenses) {
    if (lens.translators.size() != plan.watch.layers.size())
      refuse("A lens needs an entry for each of ", plan.watch.layers.size(), " layers.");
  }
  for (const LiveDictionary& dictionary : plan.watch.dictionaries) {
    check_place_of(dictionary.place);
    check_width("A dictionary", dictionary.hidden, n_embd);
    if (dictionary.top < 1) refuse("A dictionary needs at least 1 feature, got ", dictionary.top, ".");
  }
  if (plan.watch.lens_top < 0) refuse("The lens needs at least 0 tokens, got ", plan.watch.lens_top, ".");
  for (const LiveProjection& projection : plan.watch.projections) {
    check_place_of(projection.place);
    check_width("A projection's vector", projection.direction->values.size(), n_embd);
  }
}

}  // namespace tapline
