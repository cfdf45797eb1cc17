#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/cancel.h"
#include "capture/batch_edits.h"
#include "capture/residual_stream.h"
#include "capture/row_map.h"
#include "ggml.h"

namespace tapline {

/// The reading and the edits at one point of one block during a decode.
struct TapPoint {
  int layer = 0;
  bool read = true;
  /// Applied in order, before the graph uses the rows.
  const std::vector<RowEdit>* edits = nullptr;
  Point point = Point::kBlockOut;
  bool read_edited = false;  // reads after the edits, as the graph continues
  /// Batch indices of the rows to read, ascending: others are not fetched from a device, but may be read.
  /// Null: all.
  const std::vector<int>* rows = nullptr;
  /// Only the rows' lengths are needed: they may be given without the rows.
  bool only_lengths = false;

  Place place() const { return {layer, point}; }
};

/// Rows of one place, before any edit unless `read_edited`.
struct TappedRows {
  int layer;
  const float* values;              // [count, width]
  const std::vector<int>* indices;  // batch index of each row
  size_t count;
  Point point;
  size_t width;  // numbers of a row
  /// For attention: [heads, count, width], for each head and token a row over the memory's cells.
  size_t heads = 1;
  const ggml_tensor* tensor = nullptr;  // in the graph, readable now
  const int32_t* experts = nullptr;     // for the router, [count, width]: ids for the weights in `values`
  const double* lengths = nullptr;      // [count], instead of `values`

  Place place() const { return {layer, point}; }
};

/// Reads and edits points of blocks while llama_decode runs: a state machine in llama.cpp's eval callback.
///
/// The scheduler asks for each node in graph order whether it is needed, and splits the graph after needed
/// nodes. So the tap needs as few as possible: the armed places, and none when disarmed. Points inside a
/// block are found by their distance from a named node; at the end of the block, the route from its output to
/// each of them is checked, and a pass with an unexpected tensor fails.
///
/// Unless the tap is shared, a pass ends early by an exception through llama_decode: EarlyExit after the
/// deepest armed layer with `leave_early`, Error on cancellation or if the graph is not as expected.
/// Returning false, ggml's way, only ends one split. With several devices, the inputs of later splits would
/// still be copied, and the scheduler, which selects experts to copy, would read choices that were never
/// computed and abort the process. llama.cpp's frames in between are C++ with only destructible objects; the
/// context is as after a completed pass, without outputs.
///
/// A tap belongs to one llama_context and is used by the thread that decodes.
class BlockTap {
 public:
  using Sink = std::function<void(const TappedRows&)>;
  /// The requested part of a pass is done. Its micro-batch is the last one that llama_decode computes.
  struct EarlyExit {};

  /// With `shared`, batches also have rows of other requests: after a failure, a pass is computed to its end
  /// without further readings or edits.
  explicit BlockTap(bool shared = false) : shared_(shared) {}
  void describe(const ResidualStream* stream) { stream_ = stream; }
  /// Names of block outputs in graphs that change them afterwards, by layer; empty where they do not. A graph
  /// without any row of a layer changes nothing there.
  void name_outputs(std::vector<std::string> names) { outputs_ = std::move(names); }

  /// `points` in any order, each at a place where a tensor is computed. `rows` are the tokens of each
  /// micro-batch.
  void arm(std::vector<TapPoint> points, bool leave_early, const std::vector<MicroBatch>* rows, Sink sink,
           const CancelToken& cancel);
  void disarm();

  /// Throws the failure of a shared tap since arm(), after a completed pass: a wrong shape, an unexpected row
  /// order, an armed place that a graph did not have.
  void check() const;
  /// Throws if a completed pass has not reached every armed place.
  void check_complete() const;

  /// For llama_context_params: ggml_backend_sched_eval_callback and its user data. Throws EarlyExit, Error,
  /// and the exceptions of the sink.
  static bool on_node(ggml_tensor* t, bool ask, void* user_data);

 private:
  /// A point and the location of its node.
  struct ArmedPoint {
    TapPoint point;
    const char* anchor = nullptr;
    int offset = 0;
    /// Of the block's output in a graph that could change it and does not: the same as without changes.
    const char* unchanged_anchor = nullptr;
    int unchanged_offset = 0;
    int node = 0;
    bool proof_only = false;  // only proves the other points of the block
    bool keep = false;        // its rows are read by edits of later points
    int width = 0;
    int heads = 0;
    const ggml_tensor* tensor = nullptr;  // of the current micro-batch
    int64_t due = -1;                     // the number of its node, after its anchor
  };

  bool wants(const ggml_tensor* t);
  void find_anchors(const ggml_tensor* t);
  void prove(const ArmedPoint& output, const ggml_tensor* t);
  const ggml_tensor* reach(const ggml_tensor* from, const std::vector<uint8_t>& route) const;
  ArmedPoint armed_point(const TapPoint& point, bool proof_only) const;
  void take(ggml_tensor* t);
  void begin_micro_batch(const ggml_tensor* first_node);
  /// Applies the edits of a layer to its rows, [indices.size(), n_embd]. Returns the first edited row and the
  /// number of rows from there to the last one.
  std::pair<size_t, size_t> edit(const std::vector<RowEdit>& edits, const std::vector<int>& indices,
                                 float* values, const ArmedPoint& here);
  /// Arms the earlier points that edits read, to keep their rows.
  void arm_gauged(const TapPoint& edited);
  /// The row of a token that was kept at a point of the same block.
  const float* kept_row(Place place, int batch_index) const;
  void finish_point();
  void take_attention(const ArmedPoint& here, ggml_tensor* t);
  void take_routing(const ArmedPoint& here, ggml_tensor* t);
  /// The batch indices of `count` rows of the micro-batch: of all tokens, or only of outputs, which the last
  /// block usually computes; null for any other count.
  const std::vector<int>* rows_of(size_t count) const;
  /// Fails if the graph reads unexpected tokens.
  bool in_order();
  /// A contiguous tensor's numbers in host memory.
  float* readable(const ggml_tensor* t);
  /// Copies the rows that a point needs from a device, and some in between; returns their numbers.
  std::vector<size_t> fetch(const ggml_tensor* t, const ArmedPoint& here, const std::vector<int>& indices);
  void write_back(ggml_tensor* t, const std::vector<size_t>& rows, size_t first, size_t count,
                  size_t row_bytes) const;
  void look_for_positions(const ggml_tensor* node);
  void fail(const std::string& sentence);
  /// Whether the micro-batch has not reached a place, and the sentence about it.
  bool incomplete() const { return batch_ >= 0 && next_ < points_.size(); }
  std::string missing() const;

  bool shared_;
  const ResidualStream* stream_ = nullptr;
  std::vector<std::string> outputs_;
  std::vector<ArmedPoint> points_;
  const std::vector<MicroBatch>* batches_ = nullptr;
  Sink sink_;
  CancelToken cancel_;
  bool armed_ = false;
  bool leave_early_ = false;

  int batch_ = -1;                         // current micro-batch
  size_t next_ = 0;                        // next point to reach in it
  size_t anchored_ = 0;                    // points whose anchors were reached
  int64_t asked_ = 0;                      // nodes of it so far
  std::vector<const ggml_tensor*> nodes_;  // the same while points are missing
  std::vector<llama_token> seen_tokens_;   // that the graph of this micro-batch reads
  std::vector<llama_pos> seen_positions_;  // the same for positions; empty until a node reads them
  std::vector<float> staging_;
  std::vector<float> parts_;  // of a row, while several of its heads are edited as one
  std::vector<int32_t> experts_;
  struct KeptRows {
    std::vector<float> values;
    std::vector<int> indices;  // ascending or not, batch index of each row
    size_t width = 0;
  };
  std::map<Place, KeptRows> kept_;  // of the micro-batch
  std::vector<int> row_at_;         // by batch index; -1: none
  std::string failure_;             // of a shared tap
};

}  // namespace tapline
