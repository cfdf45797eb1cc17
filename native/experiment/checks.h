#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "capture/edit_checks.h"
#include "experiment/passes.h"

namespace tapline {

// Checks of requests, each with one error sentence. TypeScript has validated the form; these checks need the
// model and its context.

/// Returns the layers, ascending. Throws if block outputs are unknown, or a layer does not exist or is
/// repeated.
std::vector<int> check_layers(const Passes& passes, const std::vector<int>& layers);
/// Throws unless the model has the point, with a vector of n_embd numbers per token.
void check_hidden(const Passes& passes, Point point);
/// Throws if the block does not have the point.
const Site& check_place(const Passes& passes, Place place);
/// The places with one vector per token, layer by layer and then point by point.
std::vector<Place> check_places(const Passes& passes, const std::vector<int>& layers,
                                const std::vector<Point>& points);
/// The same for a place that is edited, for some heads or, if none is given, whole rows.
const Site& check_changeable(const Passes& passes, Place place, const std::vector<int>& heads);
void check_edits(const Passes& passes, const EditPlan& plan);
/// Throws unless there are tokens, all in the vocabulary.
void check_tokens(const Passes& passes, const std::vector<llama_token>& tokens);
/// For tokens that are looked up in logits; negative means none. `what` begins the sentence.
void check_in_vocabulary(const Passes& passes, const std::string& what,
                         const std::vector<llama_token>& tokens);
void check_targets(const Passes& passes, const std::vector<llama_token>& tokens);
/// Throws if the architecture attends in both directions.
void check_causal(const Passes& passes);

bool all_finite(const float* values, size_t count);

/// Throws if an entry is listed twice; name(entry) begins the sentence.
template <class Entry, class Name>
void check_distinct(std::vector<Entry> list, const Name& name) {
  std::sort(list.begin(), list.end());
  const auto twice = std::adjacent_find(list.begin(), list.end());
  if (twice != list.end()) throw Error(ErrorCode::kInvalidArgument, name(*twice) + " is listed twice.");
}

}  // namespace tapline
