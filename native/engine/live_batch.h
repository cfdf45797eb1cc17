#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "armed/graph_edits.h"
#include "capture/batch_edits.h"
#include "capture/block_tap.h"
#include "capture/residual_stream.h"
#include "engine/live_lenses.h"
#include "engine/live_registry.h"
#include "engine/server_slots.h"

namespace tapline {

/// Whether the length of a row or change is so large that its square overflows, which norms turn into zeros
/// or infinities. True for NaN.
inline bool overflows(double length) {
  return !(length < 1e18);
}

/// Decodes the server's batches and applies the edits and readings of each live request to its rows only.
/// Everything runs on the generation thread.
///
/// Keys and values computed under an edit belong, in effect, to a different model: when a slot releases its
/// task, its cache is cut back to the first edited row, so that no later prompt, saved prompt or checkpoint
/// contains them. If an edit made numbers non-finite, the whole request fails and its slots are wiped:
/// cutting alone would leave those numbers in cells that are masked but still multiplied. Every row of a
/// request with edits is checked: its logits, or without logits the input of the last block.
class LiveBatch {
 public:
  /// `stream` describes the served model's graph and must be supported. All three must outlive this object.
  /// With `in_graph`, edits and readings are computed in the graph where it can, and by the callback
  /// otherwise.
  LiveBatch(ServerSlots& slots, LiveRegistry& registry, const ResidualStream& stream, int n_threads,
            bool in_graph);
  ~LiveBatch();
  LiveBatch(const LiveBatch&) = delete;
  LiveBatch& operator=(const LiveBatch&) = delete;

 private:
  /// One slot's live request during one decode.
  struct Owner {
    std::shared_ptr<LiveRequest> request;  // empty: the slot has none
    LiveTrack* track = nullptr;
    int n_prompt = 0;
    bool in_graph = false;  // its edits and readings are nodes of the graph; otherwise the callback's
    // Of this decode; recorded once it has succeeded.
    std::vector<EditEffect> effects;
    std::map<int, std::vector<EditEffect>> answer_effects;
    size_t states_bytes = 0;  // of saved rows
    bool overflowed = false;  // one of its rows has numbers that are too large or NaN

    /// The effects on the row of token `index`, one per edit.
    std::vector<EditEffect>& effects_at(int index);
  };
  /// A row that is read in this decode.
  struct Row {
    int slot = 0;
    int index = 0;         // of its token in the sequence
    bool watched = false;  // requested; otherwise only conditions read it
    LiveReading reading;
  };

  int decode(llama_context* ctx, llama_batch batch);
  int decode_armed(llama_context* ctx, const llama_batch& batch);
  bool find_owners(const llama_batch& batch);
  void plan(const llama_batch& batch);
  void track_token(LiveTrack& track, const LivePlan& plan, llama_token token, int place);
  std::vector<TapPoint> points() const;
  void want(const Owner& owner, const Place& place, int batch_index);
  LiveReading reading_of(const LivePlan& plan, Owner& owner, int batch_index);
  void read(const TappedRows& rows);
  void read_watched(const LiveWatch& watch, const TappedRows& tapped, const float* values,
                    LiveReading& reading);
  bool fits_graph(LiveRequest& request) const;
  bool graph_computes(const LivePlan& plan) const;
  bool any_in_graph() const;
  static Dot probe_dot(const LiveRequest& request, size_t index);
  static Dot projection_dot(const LiveRequest& request, size_t index);
  std::vector<Dot> dots_of_rows() const;
  void read_from_graph(Row& row, int batch_index);
  bool arm_graph(const llama_batch& batch);
  void collect_graph(const llama_batch& batch);
  void fail_owners(bool in_graph, const std::string& sentence);
  void commit(llama_context* ctx, const llama_batch& batch);
  void read_lenses();
  void read_features();
  void check_conditions(const Row& row);
  void refuse_non_finite(llama_context* ctx, const llama_batch& batch);
  void check_embedding(llama_context* ctx, llama_seq_id sequence, const Owner& owner,
                       const std::string& sentence);
  void fail(const std::shared_ptr<LiveRequest>& request, const std::string& sentence);
  void on_slot_release(int slot, int task);

  ServerSlots& slots_;
  LiveRegistry& registry_;
  const ResidualStream& stream_;
  const llama_vocab* const vocab_;
  const int n_embd_;
  const int n_layer_;
  BlockTap tap_;
  std::unique_ptr<GraphEdits> graph_;   // null: the callback computes everything
  bool without_graph_ = false;          // it ran out of memory
  std::unique_ptr<LiveLenses> lenses_;  // null: the model has no lens
  const int n_threads_;
  unsigned decodes_ = 0;

  // Of the decode under way.
  std::vector<Owner> owners_;  // by slot
  BatchEdits edits_;           // by the callback
  BatchEdits graph_edits_;
  std::vector<Row> rows_;
  std::vector<int> row_at_;                 // by batch index: the index in rows_; -1: not read
  std::vector<Owner*> guarded_;             // by batch index: fails if this row overflows; or null
  std::map<Place, std::vector<int>> read_;  // places of computed tensors that the callback reads, with rows
  std::set<Place> lengths_;                 // those that the graph measures
  std::vector<float> heads_;                // of a row, while several are read as one
};

}  // namespace tapline
