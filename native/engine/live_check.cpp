#include "engine/live_check.h"

#include <string>

#include "base/error.h"

namespace tapline {

namespace {

[[noreturn]] void refuse(const std::string& sentence) {
  throw Error(ErrorCode::kInvalidArgument, sentence);
}

void check_width(const char* what, size_t values, size_t n_embd) {
  if (values == n_embd) return;
  refuse(std::string(what) + " has " + std::to_string(values) + " values; the hidden size is " +
         std::to_string(n_embd) + ".");
}

/// An index into a list of `count`, or -1 where none is allowed.
void check_index(const char* what, int index, size_t count, bool none) {
  if (index >= (none ? -1 : 0) && index < static_cast<int>(count)) return;
  refuse(std::string(what) + " is entry " + std::to_string(index) + " of a list of " + std::to_string(count) +
         ".");
}

}  // namespace

void check_live_plan(const LivePlan& plan, int n_layer, size_t n_embd) {
  const auto check_layer = [n_layer](int layer) {
    if (layer >= 0 && layer < n_layer) return;
    throw Error(ErrorCode::kLayerOutOfRange, "Layer " + std::to_string(layer) + " does not exist: 0 to " +
                                                 std::to_string(n_layer - 1) + " do.");
  };
  for (const Edit& edit : plan.edits) {
    check_layer(edit.layer);
    if (edit.point != Point::kBlockOut || !edit.heads.empty())
      refuse(std::string("A live edit changes block outputs only, not ") + name_of(edit.point) + ".");
    check_vector(edit, n_embd);
  }
  if (plan.gates.size() != plan.edits.size() || plan.labels.size() != plan.edits.size())
    refuse("A plan of " + std::to_string(plan.edits.size()) + " edits needs as many gates and labels.");
  for (const int gate : plan.gates) check_index("A gate", gate, plan.conditions.size(), /*none=*/true);
  check_index("The stop condition", plan.stop, plan.conditions.size(), /*none=*/true);
  for (const LiveCondition& condition : plan.conditions) {
    check_index("A condition's probe", static_cast<int>(condition.probe), plan.probes.size(), /*none=*/false);
    if (condition.tokens < 1)
      refuse("A condition holds for at least 1 token, got " + std::to_string(condition.tokens) + ".");
  }
  for (const LiveProbe& probe : plan.probes) {
    check_layer(probe.layer);
    check_width("A probe", probe.weight.size(), n_embd);
  }
  for (const int layer : plan.watch.layers) check_layer(layer);
  if (plan.watch.lens_top < 0)
    refuse("The lens shows at least 0 tokens, got " + std::to_string(plan.watch.lens_top) + ".");
  for (const LiveProjection& projection : plan.watch.projections) {
    check_layer(projection.layer);
    check_width("A projection's vector", projection.direction->values.size(), n_embd);
  }
}

}  // namespace tapline
