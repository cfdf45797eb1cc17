#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "experiment/passes.h"

namespace tapline {

// What experiments check of what they are asked, each in one sentence. TypeScript has validated the form;
// these ask what only the model and its context know.

/// The layers, ascending. Throws where block outputs are not known, and unless each is there, once.
std::vector<int> check_layers(const Passes& passes, const std::vector<int>& layers);
/// Throws where the model has no such point, and where that is no vector of n_embd numbers for each token.
void check_hidden(const Passes& passes, Point point);
/// Throws where the block has no such point.
const Site& check_place(const Passes& passes, Place place);
/// The places of one vector for each token, layer by layer and then point by point.
std::vector<Place> check_places(const Passes& passes, const std::vector<int>& layers,
                                const std::vector<Point>& points);
/// The same of one that is changed, of single heads or, where none is named, of whole rows.
const Site& check_changeable(const Passes& passes, Place place, const std::vector<int>& heads);
void check_edits(const Passes& passes, const EditPlan& plan);
/// Throws unless there are tokens, all of them in the vocabulary.
void check_tokens(const Passes& passes, const std::vector<llama_token>& tokens);
/// Of tokens that are looked up in logits, of which negative ones stand for none. `what` begins the sentence.
void check_in_vocabulary(const Passes& passes, const std::string& what,
                         const std::vector<llama_token>& tokens);
void check_targets(const Passes& passes, const std::vector<llama_token>& tokens);
/// Throws where the architecture attends in both directions.
void check_causal(const Passes& passes);

/// Throws where an entry is listed twice; name(entry) begins the sentence.
template <class Entry, class Name>
void check_distinct(std::vector<Entry> list, const Name& name) {
  std::sort(list.begin(), list.end());
  const auto twice = std::adjacent_find(list.begin(), list.end());
  if (twice != list.end()) throw Error(ErrorCode::kInvalidArgument, name(*twice) + " is listed twice.");
}

}  // namespace tapline
