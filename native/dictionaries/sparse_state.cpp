#include <algorithm>
#include <string>

#include "base/error.h"
#include "dictionaries/sparse_model.h"

// Checkpoints of a model: matrices [features, hidden], of the skip term [hidden, hidden], without padding.

namespace tapline::dictionaries {

std::vector<float> SparseModel::unpacked(const AlignedArray<float>& panels, int rows) const {
  std::vector<float> out(static_cast<size_t>(rows) * static_cast<size_t>(shape_.hidden));
  team_.parallel_for(rows, [&](int i) {
    float* row = out.data() + static_cast<size_t>(i) * static_cast<size_t>(shape_.hidden);
    for (int k = 0; k < shape_.hidden; ++k) row[k] = panels.data()[place(i, k)];
  });
  return out;
}

void SparseModel::pack(const std::vector<float>& from, int rows, AlignedArray<float>& panels) const {
  const auto hidden = static_cast<size_t>(shape_.hidden);
  for (int i = 0; i < rows; ++i)
    for (int k = 0; k < shape_.hidden; ++k)
      panels[place(i, k)] = from[static_cast<size_t>(i) * hidden + static_cast<size_t>(k)];
}

std::vector<float> SparseModel::unpadded(const AlignedArray<float>& rows) const {
  std::vector<float> out(static_cast<size_t>(shape_.features) * static_cast<size_t>(shape_.hidden));
  for (size_t f = 0; f < static_cast<size_t>(shape_.features); ++f) {
    std::copy_n(rows.data() + f * static_cast<size_t>(padded_hidden_), shape_.hidden,
                out.data() + f * static_cast<size_t>(shape_.hidden));
  }
  return out;
}

void SparseModel::pad(const std::vector<float>& from, AlignedArray<float>& rows) const {
  for (size_t f = 0; f < static_cast<size_t>(shape_.features); ++f) {
    std::copy_n(from.data() + f * static_cast<size_t>(shape_.hidden), shape_.hidden,
                rows.data() + f * static_cast<size_t>(padded_hidden_));
  }
}

NamedNumbers SparseModel::state() const {
  NamedNumbers out;
  const auto add = [&](const std::string& name, const Trained& trained, const auto& read) {
    out.emplace_back(name, read(trained.values));
    out.emplace_back(name + ".m", read(trained.m));
    out.emplace_back(name + ".v", read(trained.v));
  };
  const auto of_features = [&](const AlignedArray<float>& values) { return head(values, shape_.features); };
  add("encoder", encoder_, [&](const auto& values) { return unpacked(values, shape_.features); });
  add("decoder", decoder_, [&](const auto& values) { return unpadded(values); });
  add("encoder_bias", encoder_bias_, of_features);
  add("decoder_bias", decoder_bias_, [&](const auto& values) { return head(values, shape_.hidden); });
  add("log_threshold", log_threshold_, of_features);
  if (shape_.skip) add("skip", skip_, [&](const auto& values) { return unpacked(values, shape_.hidden); });
  // As two numbers below 2^24, which a float represents exactly.
  std::vector<float> fired;
  for (int f = 0; f < shape_.features; ++f) {
    const int64_t update = last_fired_[static_cast<size_t>(f)];
    fired.push_back(static_cast<float>(update >> 24));
    fired.push_back(static_cast<float>(update & 0xffffff));
  }
  out.emplace_back("last_fired", std::move(fired));
  out.emplace_back("progress", std::vector<float>{static_cast<float>(updates_ >> 24),
                                                  static_cast<float>(updates_ & 0xffffff), batch_threshold_});
  return out;
}

void SparseModel::restore(const NamedNumbers& state) {
  const auto find = [&](const std::string& name, size_t size) -> const std::vector<float>& {
    const auto found =
        std::find_if(state.begin(), state.end(), [&](const auto& entry) { return entry.first == name; });
    if (found == state.end() || found->second.size() != size) {
      throw_error(ErrorCode::kInvalidArgument, "The checkpoint belongs to a different dictionary: its ", name,
                  " has ", found == state.end() ? 0 : found->second.size(), " numbers, not ", size, ".");
    }
    return found->second;
  };
  const auto features = static_cast<size_t>(shape_.features);
  const auto hidden = static_cast<size_t>(shape_.hidden);
  const auto load = [&](const std::string& name, Trained& trained, size_t size, const auto& write) {
    write(find(name, size), trained.values);
    write(find(name + ".m", size), trained.m);
    write(find(name + ".v", size), trained.v);
  };
  load("encoder", encoder_, features * hidden,
       [&](const auto& from, auto& to) { pack(from, shape_.features, to); });
  load("decoder", decoder_, features * hidden, [&](const auto& from, auto& to) { pad(from, to); });
  const auto copy = [](const std::vector<float>& from, AlignedArray<float>& to) {
    std::copy(from.begin(), from.end(), to.data());
  };
  load("encoder_bias", encoder_bias_, features, copy);
  load("decoder_bias", decoder_bias_, hidden, copy);
  load("log_threshold", log_threshold_, features, copy);
  if (shape_.skip) {
    load("skip", skip_, hidden * hidden, [&](const auto& from, auto& to) { pack(from, shape_.hidden, to); });
  }
  const auto whole = [](float high, float low) {
    return (static_cast<int64_t>(high) << 24) + static_cast<int64_t>(low);
  };
  const std::vector<float>& fired = find("last_fired", 2 * features);
  for (size_t f = 0; f < features; ++f) last_fired_[f] = whole(fired[2 * f], fired[2 * f + 1]);
  const std::vector<float>& progress = find("progress", 3);
  updates_ = whole(progress[0], progress[1]);
  batch_threshold_ = progress[2];
  const bool penalised = shape_.architecture == Architecture::kRelu;
  for (int f = 0; f < shape_.features; ++f) {
    // Rows of length 1 get exactly that: their length before the division is not saved.
    measure_norm(f);
    if (!penalised) norms_[static_cast<size_t>(f)] = 1.0F;
    measure_threshold(f);
  }
}

}  // namespace tapline::dictionaries
