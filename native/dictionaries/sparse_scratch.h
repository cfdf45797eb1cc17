#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "dictionaries/sparse_model.h"

namespace tapline::dictionaries {

/// Buffers of one thread for rows, or for a panel of features.
struct SparseModel::Scratch {
  AlignedArray<float> products;  // [panels][rows][32]: h
  std::vector<float> maxima;     // [rows][panels]
  std::vector<float> sorted;     // [panels]
  std::vector<Fired> candidates;
  AlignedArray<float> encoder_gradient;  // [32 features][padded hidden]
  AlignedArray<float> decoder_gradient;  // [32 features][padded hidden]
  AlignedArray<float> turned;            // [padded hidden][32 features]
};

class SparseModel::Borrowed {
 public:
  explicit Borrowed(SparseModel& model) : model_(model) {
    const std::lock_guard<std::mutex> lock(model.scratch_mutex_);
    if (model.scratch_.empty()) model.scratch_.push_back(std::make_unique<Scratch>());
    scratch_ = std::move(model.scratch_.back());
    model.scratch_.pop_back();
  }
  ~Borrowed() {
    const std::lock_guard<std::mutex> lock(model_.scratch_mutex_);
    model_.scratch_.push_back(std::move(scratch_));
  }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  Scratch& operator*() const { return *scratch_; }

 private:
  SparseModel& model_;
  std::unique_ptr<Scratch> scratch_;
};

}  // namespace tapline::dictionaries
