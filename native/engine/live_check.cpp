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

}  // namespace

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
  for (const LiveProbe& probe : plan.probes) {
    check_layer(probe.layer);
    check_width("A probe", probe.weight.size(), n_embd);
  }
  for (const int layer : plan.watch.layers) check_layer(layer);
  if (plan.watch.lens_top < 0) refuse("The lens needs at least 0 tokens, got ", plan.watch.lens_top, ".");
  for (const LiveProjection& projection : plan.watch.projections) {
    check_layer(projection.layer);
    check_width("A projection's vector", projection.direction->values.size(), n_embd);
  }
}

}  // namespace tapline
