#include "capture/ffn_input_path.h"

namespace tapline {

namespace {

FfnInputPath read_path(const GraphView& graph, const Model& model, const BlockPoints& points, int layer,
                       int64_t n_tokens) {
  FfnInputPath path;
  const Point input = points.parallel ? Point::kBlockIn : Point::kMid;
  for (const Point point : {input, Point::kFfnIn}) {
    if (points.at(point).supported && points.site({layer, point}).node >= 0) continue;
    path.why = "its " + std::string(name_of(point)) + " is not proven";
    return path;
  }
  path.why =
      StepReader(graph, model, n_tokens)
          .read(points.site({layer, input}).node, points.site({layer, Point::kFfnIn}).node, path.steps);
  return path;
}

}  // namespace

std::vector<FfnInputPath> read_ffn_input_paths(const GraphView& graph, const Model& model,
                                               const BlockPoints& points, int64_t n_tokens,
                                               const std::string& subject) {
  return paths_of_blocks(model, subject, "path to the MLP's input",
                         [&](int layer) { return read_path(graph, model, points, layer, n_tokens); });
}

}  // namespace tapline
