#pragma once

#include <map>
#include <memory>
#include <vector>

#include "capture/logit_lens.h"
#include "engine/live_registry.h"
#include "engine/live_request.h"

namespace tapline {

/// Reads the rows of live requests through the logit lens and saved ones. A saved lens is in a device's
/// memory while a request that watches it is registered. On the generation thread.
class LiveLenses {
 public:
  /// A watched row whose reading has `lens_rows`.
  struct Row {
    int slot = 0;
    const LiveWatch* watch = nullptr;
    LiveReading* reading = nullptr;
  };

  LiveLenses(const llama_model* model, const LensRecipe& recipe, int n_threads);

  /// Reads all rows together and frees their `lens_rows`. If numbers of one slot are not finite, its rows
  /// stay unread: their request ends elsewhere.
  void read(const std::vector<Row>& rows);

  /// Frees the saved lenses that no request watches.
  void evict(const LiveRegistry& registry);

 private:
  /// Rows that one lens reads, and where their tokens go.
  struct Group {
    std::vector<float> states;
    std::vector<std::pair<const Row*, size_t>> places;  // with the first token in the reading

    void add(const Row& row, size_t lens, size_t layer, size_t width);
  };

  bool read_together(const std::vector<Row>& rows);
  LoadedTranslator* loaded(const Translator& translator);

  const size_t width_;
  LogitLens lens_;
  std::map<Translator, std::shared_ptr<LoadedTranslator>> translators_;
};

}  // namespace tapline
