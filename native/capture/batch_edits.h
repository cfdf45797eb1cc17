#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "capture/edit.h"

namespace tapline {

/// An edit of one row of a batch.
struct RowEdit {
  int batch_index = 0;  // of the token in the batch given to llama_decode
  const Edit* edit = nullptr;
  EditEffect* effect = nullptr;  // where the change is added
};

/// The edits of one batch: the plans of its sequences, by row. The plans and the effects must outlive it.
class BatchEdits {
 public:
  /// Adds the edits of `plan` for token `index` of a sequence with `n_prompt` prompt tokens, which is at
  /// `batch_index` in the batch. `effects` has one entry per edit.
  void add(const EditPlan& plan, std::vector<EditEffect>& effects, int batch_index, int32_t index,
           int32_t n_prompt) {
    add(plan, effects, batch_index, [&](size_t i) { return plan[i].positions.contains(index, n_prompt); });
  }
  /// Adds the edits of `plan` for which acts(index of the edit) is true.
  template <class Acts>
  void add(const EditPlan& plan, std::vector<EditEffect>& effects, int batch_index, const Acts& acts) {
    for (size_t i = 0; i < plan.size(); ++i) {
      if (acts(i)) by_place_[plan[i].place().computed_at()].push_back({batch_index, &plan[i], &effects[i]});
    }
  }
  /// Adds the edits of a place where a tensor is computed, after those that it has.
  void add(Place place, const std::vector<RowEdit>& rows) {
    std::vector<RowEdit>& all = by_place_[place];
    all.insert(all.end(), rows.begin(), rows.end());
  }
  void clear() { by_place_.clear(); }

  /// By the places where tensors are computed; the edits of a row are in the order of their plan.
  const std::map<Place, std::vector<RowEdit>>& by_place() const { return by_place_; }
  /// Null if a place has none.
  const std::vector<RowEdit>* at(Place place) const {
    const auto found = by_place_.find(place.computed_at());
    return found == by_place_.end() ? nullptr : &found->second;
  }

 private:
  std::map<Place, std::vector<RowEdit>> by_place_;
};

}  // namespace tapline
