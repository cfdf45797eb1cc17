#pragma once

#include <vector>

#include "armed/graph_edits.h"
#include "capture/batch_edits.h"
#include "capture/block_tap.h"

namespace tapline {

/// The block outputs that the compute graph of a pass itself reads and edits, so that no device stops at
/// them: the tap's work, where it would cost more.
class GraphPoints {
 public:
  /// Throws kOutOfMemory.
  GraphPoints(llama_context* ctx, const ResidualStream& stream) : graph_(ctx, stream) {}

  /// Arms the graph for one decode of `batch`, or of parts of it one after the other, and returns the points
  /// that remain for the tap. It gets all of them if one is inside a block or has an edit that the graph
  /// cannot compute, and always the one that a pass with `leave_early` ends at. `points` must outlive
  /// collect().
  std::vector<TapPoint> arm(const llama_batch& batch, const std::vector<TapPoint>& points, bool leave_early,
                            bool reads);
  /// See GraphEdits::outputs_before_edits.
  std::vector<std::string> outputs_before_edits() const { return graph_.outputs_before_edits(); }
  /// After a successful decode: passes the rows to `sink`, layer by layer, and adds the effects of the edits.
  void collect(const llama_batch& batch, const BlockTap::Sink& sink);
  /// After a decode that failed.
  void abandon();
  /// Before a decode of anything else.
  void disarm() { graph_.disarm(); }

 private:
  bool takes(const TapPoint& point) const;
  bool arm_graph(const llama_batch& batch, bool reads);

  GraphEdits graph_;
  bool out_of_memory_ = false;
  std::vector<TapPoint> taken_;  // of the pass under way
  BatchEdits edits_;
  bool armed_ = false;
};

}  // namespace tapline
