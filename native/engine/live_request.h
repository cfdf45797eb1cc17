#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "capture/edit.h"
#include "capture/logit_lens.h"
#include "capture/positions.h"
#include "engine/thinking.h"
#include "llama.h"

namespace tapline {

/// A linear probe at one place, including its standardisation: sigmoid(h . weight + bias).
struct LiveProbe {
  std::string name;
  Place place;
  std::vector<double> weight;  // [n_embd]
  double bias = 0;

  double score(const float* row) const;
  /// The score of a row whose product with the weight is known.
  double score_of(double product) const;
};

/// The projection of a row onto a direction's unit vector.
struct LiveProjection {
  std::string name;
  Place place;
  std::shared_ptr<const Direction> direction;

  double of(const float* row) const;
};

/// An active feature of a row.
struct LiveFeature {
  int feature = 0;
  float activation = 0;
};

/// A dictionary that reads the rows of a place.
struct LiveDictionary {
  using Strongest = std::vector<std::vector<LiveFeature>>;

  std::string name;
  Place place;
  int top = 1;
  size_t hidden = 0;
  /// The most active features of each row of [count, hidden], at most `top`, strongest first. Throws Error.
  std::function<Strongest(const float* rows, size_t count, int threads)> strongest;
};

/// A saved lens, which translates rows of some layers before the logit lens reads them.
struct LiveLens {
  std::string name;
  std::vector<std::optional<Translator>> translators;  // by watched layer
};

/// Met once a probe's score has been above or below a bound for a number of consecutive tokens.
struct LiveCondition {
  size_t probe = 0;  // index among the plan's probes
  double bound = 0;
  bool above = true;
  int tokens = 1;

  bool holds(double score) const { return above ? score > bound : score < bound; }
};

/// The readings of a request's rows, before any edit at that layer.
struct LiveWatch {
  std::vector<int> layers;  // of norms, lens and states
  Point point = Point::kBlockOut;
  std::vector<int> heads;  // of kHeadOut, read as one vector; empty: the whole row
  Positions positions;
  bool norms = false;
  int lens_top = 0;  // candidates of the logit lens; 0: none
  std::vector<LiveLens> lenses;
  std::vector<LiveProjection> projections;
  std::vector<LiveDictionary> dictionaries;
  bool probes = false;  // report the scores of the plan's probes
  std::string
      states;  // name under which whole rows are saved, plus the completion's number; empty: they are not
  size_t states_bytes = 0;  // limit for the rows of one completion

  /// The first of the `lens_top` tokens in a reading of a lens at a watched layer: the logit lens for 0, then
  /// the saved ones.
  size_t first_token(size_t lens, size_t layer) const {
    return (lens * layers.size() + layer) * static_cast<size_t>(lens_top);
  }
  bool reads_layers() const { return norms || lens_top > 0 || !states.empty(); }
  bool reads_rows() const {
    return reads_layers() || probes || !projections.empty() || !dictionaries.empty();
  }
};

/// The edits and readings of a request, shared by its completions.
struct LivePlan {
  EditPlan edits;
  std::vector<int> gates;  // for each edit its condition's index, -1: always
  std::vector<LiveCondition> conditions;
  int stop = -1;  // the condition that ends the answer; -1: none
  std::vector<LiveProbe> probes;
  LiveWatch watch;
  std::vector<std::string> labels;  // for each edit a JSON object as text, for the answer
  bool pair = false;                // generate each completion also without the edits
  bool embeds = false;              // an embedding of the prompt, which has no logits
  ThinkingTags thinking;

  /// Whether any positions are limited to this part of the answer.
  bool needs_part(Positions::Part part) const;
};

/// The readings of one row.
struct LiveReading {
  llama_token token = -1;        // the row's token
  bool next_watched = false;     // reported for the token that this row predicts
  std::vector<float> states;     // [watched layers, width], NaN if the layer did not compute this row
  std::vector<float> norms;      // by watched layer
  std::vector<float> lens_rows;  // [watched layers, n_embd], until the lenses have read them
  std::vector<bool> lens_taken;  // by watched layer; false if the layer did not compute this row
  /// Of the logit lens and the saved ones, [1 + lenses, watched layers, lens_top], most probable first; -1:
  /// not read.
  std::vector<llama_token> lens_ids;
  std::vector<float> lens_probabilities;
  std::vector<double> projections;
  std::vector<double> probes;                    // NaN if the probe's layer did not compute this row
  std::vector<std::vector<float>> feature_rows;  // by dictionary, until it has read them; empty: not computed
  std::vector<bool> features_read;               // by dictionary
  LiveDictionary::Strongest features;            // by dictionary
};

/// The saved rows of one completion.
struct LiveStates {
  std::string id;
  int n_prompt = 0;
  std::vector<int32_t> rows;    // token indices, ascending
  std::vector<int32_t> tokens;  // ids at these indices
  std::vector<int> layers;
  std::vector<std::vector<float>> values;  // [layers][rows, width]
};

/// The state of one completion of a request. The generation thread writes it, threads that format answers
/// read it, both under its mutex.
struct LiveTrack {
  LiveTrack(const LivePlan& plan, bool plain);

  /// Whether rows beyond the limit were dropped. Takes the mutex.
  bool states_were_truncated();

  /// Without the edits: the baseline of a pair.
  const bool plain;

  // Constant once the scheduler has the task.
  int n_prompt = 0;
  /// The track with the prompt's rows, which the completions of one prompt share; this one for the first.
  LiveTrack* prompt = this;

  /// The effect of each edit on the prompt's rows, including shared ones, and on generated rows before `end`;
  /// later ones are rejected guesses of a draft model. Takes the mutexes.
  std::vector<EditEffect> effects_before(int end);

  // On the generation thread only.
  bool edited = false;           // an edit has changed one of its rows
  int first_edited = INT32_MAX;  // token index from which the cache is edited
  /// Whether its cache depends on an edited row.
  bool depends_on_edit() const { return edited || prompt->edited; }

  std::mutex mutex;
  std::vector<EditEffect> effects;  // on the prompt's rows that it computed, one per edit
  // By token index. The last write wins, which undoes rejected guesses.
  std::map<int, std::vector<EditEffect>> answer_effects;  // on the rows of generated tokens
  std::map<int, LiveReading> rows;
  std::map<int, llama_token> generated;  // by index in the answer, once the model has read them
  std::map<int, ThinkingState> parts;    // by index in the answer, before that token; empty if not needed
  size_t states_bytes = 0;               // of saved rows
  bool states_truncated = false;         // rows beyond the limit were dropped
  std::vector<int> reached;  // for each condition the token index at which it was first met, -1: never
  bool stopped = false;      // by the plan's stop condition
  bool in_graph = false;     // some of its rows were computed with edits and readings in the graph
  bool by_callback = false;  // the same for the callback
};

/// One request's plan and its completions, by result index.
class LiveRequest {
 public:
  /// If the plan has pairs, the second half of the completions has no edits.
  LiveRequest(LivePlan plan, size_t completions);

  const LivePlan plan;
  const uint64_t id;               // no other request of the process has it
  std::optional<bool> fits_graph;  // on the generation thread only: LiveBatch finds it once
  LiveTrack& track(size_t index) { return *tracks_[index]; }
  /// Sets the length of a completion's prompt and the completion that computes it, whose cache the others
  /// copy. Before the scheduler has the task.
  void set_prompt(size_t index, int n_prompt, size_t computed_by);
  size_t size() const { return tracks_.size(); }
  /// For a completion without edits, its counterpart with edits; otherwise itself.
  size_t pair_of(size_t index) const {
    return plan.pair && index >= tracks_.size() / 2 ? index - tracks_.size() / 2 : index;
  }

  /// Fails the whole request, once: completions copy each other's caches and share an answer.
  void fail(const std::string& sentence);
  /// The sentence that the answer ends with; empty without a failure.
  std::string failure() const;

 private:
  std::vector<std::unique_ptr<LiveTrack>> tracks_;
  mutable std::mutex failure_mutex_;
  std::string failure_;
};

}  // namespace tapline
