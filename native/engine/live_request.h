#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "capture/edit.h"
#include "capture/logit_lens.h"
#include "capture/positions.h"
#include "engine/thinking.h"
#include "llama.h"

namespace tapline {

/// A linear probe at one block output: sigmoid(h . weight + bias), its standardisation folded in.
struct LiveProbe {
  std::string name;
  int layer = 0;
  std::vector<double> weight;  // [n_embd]
  double bias = 0;

  double score(const float* row) const;
};

/// The projection of a row on a direction's unit vector.
struct LiveProjection {
  std::string name;
  int layer = 0;
  std::shared_ptr<const Direction> direction;

  double of(const float* row) const;
};

/// Holds once a probe's score was above or below a bound for so many tokens in a row.
struct LiveCondition {
  size_t probe = 0;  // index among the plan's probes
  double bound = 0;
  bool above = true;
  int tokens = 1;

  bool holds(double score) const { return above ? score > bound : score < bound; }
};

/// What is read of a request's rows, before any edit at that layer.
struct LiveWatch {
  std::vector<int> layers;  // in the order asked for; of norms and lens
  Positions positions;
  bool norms = false;
  int lens_top = 0;  // candidates of the logit lens; 0: none
  std::vector<LiveProjection> projections;
  bool probes = false;  // tell the scores of the plan's probes
  /// Where whole rows are kept, the name that the answer gives them; the n-th completion adds its number.
  std::string states;
  size_t states_bytes = 0;  // that one completion's rows may take

  bool reads_rows() const {
    return norms || lens_top > 0 || probes || !projections.empty() || !states.empty();
  }
};

/// What a request changes and watches: plain data, made once, shared by its completions.
struct LivePlan {
  EditPlan edits;
  std::vector<int> gates;  // for each edit its condition's index, -1: always
  std::vector<LiveCondition> conditions;
  int stop = -1;  // the condition that ends the answer; -1: none
  std::vector<LiveProbe> probes;
  LiveWatch watch;
  std::vector<std::string> labels;  // for each edit what the answer says of it: a JSON object as text
  bool pair = false;                // beside each completion the same one without the edits
  ThinkingTags thinking;

  /// Whether anything asks for the thinking or the answer alone.
  bool needs_part(Positions::Part part) const;
};

/// What was read of one row.
struct LiveReading {
  llama_token token = -1;        // that stands there
  bool next_watched = false;     // it is told of the token that this row chooses
  std::vector<float> states;     // [watched layers, n_embd], NaN where the layer did not compute this row
  std::vector<float> norms;      // by watched layer
  std::vector<float> lens_rows;  // [watched layers, n_embd], until the lens has read them
  std::vector<bool> lens_read;   // by watched layer; false where the layer did not compute this row
  std::vector<llama_token> lens_ids;
  std::vector<float> lens_probabilities;  // as many for each layer that was read
  std::vector<double> projections;
  std::vector<double> probes;  // NaN where a probe's layer did not compute this row
};

/// The rows of one completion that were asked for as they are.
struct LiveStates {
  std::string id;
  int n_prompt = 0;
  std::vector<int32_t> rows;    // token indices, ascending
  std::vector<int32_t> tokens;  // that stand there
  std::vector<int> layers;
  std::vector<std::vector<float>> values;  // [layers][rows, n_embd]
};

/// What happened to one completion of a request. Written by the generation thread, read by the threads that
/// format answers, both under its mutex.
struct LiveTrack {
  LiveTrack(const LivePlan& plan, bool plain);

  /// Whether a row was left out because there were more than may be kept. Takes the mutex.
  bool states_were_truncated();

  /// It wears none of the edits: the other one of a pair.
  const bool plain;

  // Set before the scheduler has the task, and not changed afterwards.
  int n_prompt = 0;
  /// Completions of one prompt share its rows: the track that has them, this one for the first.
  LiveTrack* prompt = this;

  /// The effect of each edit on the prompt's rows, also where another completion computed them, and on
  /// generated rows before `end`. After it are guesses of a draft model that were rejected. Takes the
  /// mutexes.
  std::vector<EditEffect> effects_before(int end);

  // On the generation thread only.
  bool edited = false;           // an edit has changed one of its rows
  int first_edited = INT32_MAX;  // token index; the cache is edited from here on
  /// Whether its cache holds what came of an edited row.
  bool depends_on_edit() const { return edited || prompt->edited; }

  std::mutex mutex;
  std::vector<EditEffect> effects;  // on rows of the prompt that it computed, one per edit
  /// On the row of each generated token, by its index. The last write wins, as of the rows.
  std::map<int, std::vector<EditEffect>> answer_effects;
  /// By token index. The last write wins, so that guesses which were rejected are undone.
  std::map<int, LiveReading> rows;
  std::map<int, llama_token> generated;  // by place in the answer, as far as the model has read them
  /// By place in the answer, as it is before that token; empty where nobody asks.
  std::map<int, ThinkingState> parts;
  size_t states_bytes = 0;        // that are kept in rows
  bool states_truncated = false;  // there were more than may be kept
  std::vector<int> reached;       // for each condition the token index at which it was first met, -1: never
  bool stopped = false;           // by the plan's stop condition
};

/// One request's plan and its completions, by result index.
class LiveRequest {
 public:
  /// Of the completions the second half wears no edits where the plan asks for pairs.
  LiveRequest(LivePlan plan, size_t completions);

  const LivePlan plan;
  LiveTrack& track(size_t index) { return *tracks_[index]; }
  /// Says how long the prompt of a completion is, and which completion computes it: another one's copies its
  /// cache. Before the scheduler has the task.
  void set_prompt(size_t index, int n_prompt, size_t computed_by);
  size_t size() const { return tracks_.size(); }
  /// The completion that this one stands beside without edits, or itself.
  size_t pair_of(size_t index) const {
    return plan.pair && index >= tracks_.size() / 2 ? index - tracks_.size() / 2 : index;
  }

  /// A request fails as a whole, once: completions copy each other's caches, and its answer is one.
  void fail(const std::string& sentence);
  /// One sentence that the answer ends with; empty while all is well.
  std::string failure() const;

 private:
  std::vector<std::unique_ptr<LiveTrack>> tracks_;
  mutable std::mutex failure_mutex_;
  std::string failure_;
};

}  // namespace tapline
