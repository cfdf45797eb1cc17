#include "engine/live_lenses.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"

namespace tapline {

LiveLenses::LiveLenses(const llama_model* model, const LensRecipe& recipe, int n_threads)
    : width_(static_cast<size_t>(llama_model_n_embd(model))),
      lens_(model, recipe, llama_model_n_embd(model), llama_vocab_n_tokens(llama_model_get_vocab(model)),
            n_threads) {}

void LiveLenses::read(const std::vector<Row>& rows) {
  if (!read_together(rows)) {
    std::map<int, std::vector<Row>> by_slot;
    for (const Row& row : rows) by_slot[row.slot].push_back(row);
    for (const auto& [slot, of_slot] : by_slot) read_together(of_slot);
  }
  for (const Row& row : rows) row.reading->lens_rows = {};
}

void LiveLenses::Group::add(const Row& row, size_t lens, size_t layer, size_t width) {
  const float* values = row.reading->lens_rows.data() + layer * width;
  states.insert(states.end(), values, values + width);
  places.emplace_back(&row, row.watch->first_token(lens, layer));
}

/// The rows of all requests that one translator reads are one product, and so is the head over everything.
/// False if that fails.
bool LiveLenses::read_together(const std::vector<Row>& rows) {
  Group all;
  std::map<LoadedTranslator*, Group> translated;
  int most = 0;
  for (const Row& row : rows) {
    const LiveWatch& watch = *row.watch;
    most = std::max(most, watch.lens_top);
    for (size_t layer = 0; layer < watch.layers.size(); ++layer) {
      if (!row.reading->lens_taken[layer]) continue;
      all.add(row, 0, layer, width_);
      for (size_t lens = 0; lens < watch.lenses.size(); ++lens) {
        const std::optional<Translator>& translator = watch.lenses[lens].translators[layer];
        LoadedTranslator* const found = translator ? loaded(*translator) : nullptr;
        if (found != nullptr) translated[found].add(row, 1 + lens, layer, width_);
      }
    }
  }
  if (all.places.empty()) return true;
  TopTokens top;
  try {
    for (auto& [translator, group] : translated) {
      translator->apply(group.states);
      append(all.states, group.states);
      append(all.places, group.places);
    }
    top = lens_.top(all.states.data(), all.places.size(), most);
  } catch (const Error&) {
    return false;
  }
  const auto found = static_cast<size_t>(top.k);
  for (size_t i = 0; i < all.places.size(); ++i) {
    const auto& [row, first] = all.places[i];
    const size_t count = std::min(found, static_cast<size_t>(row->watch->lens_top));
    const auto from = static_cast<std::ptrdiff_t>(i * found);
    const auto to = static_cast<std::ptrdiff_t>(first);
    std::copy_n(top.ids.begin() + from, count, row->reading->lens_ids.begin() + to);
    std::copy_n(top.probabilities.begin() + from, count, row->reading->lens_probabilities.begin() + to);
  }
  return true;
}

/// Null if the file or the memory is not there: the lens stays unread.
LoadedTranslator* LiveLenses::loaded(const Translator& translator) {
  const auto found = translators_.find(translator);
  if (found != translators_.end()) return found->second.get();
  try {
    return (translators_[translator] = lens_.load(translator)).get();
  } catch (const Error&) {
    translators_.erase(translator);
    return nullptr;
  }
}

void LiveLenses::evict(const LiveRegistry& registry) {
  if (translators_.empty()) return;
  std::set<Translator> used;
  registry.all([&](const LiveRequest& request) {
    for (const LiveLens& lens : request.plan.watch.lenses) {
      for (const std::optional<Translator>& translator : lens.translators) {
        if (translator) used.insert(*translator);
      }
    }
    return true;
  });
  for (auto at = translators_.begin(); at != translators_.end();)
    at = used.count(at->first) > 0 ? std::next(at) : translators_.erase(at);
}

}  // namespace tapline
