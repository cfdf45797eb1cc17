#pragma once

#include <memory>
#include <mutex>

#include "dictionaries/dictionary_trainer.h"
#include "dictionaries/row_stream.h"
#include "napi/handle.h"

namespace tapline {

/// A trainer, which one operation at a time works with.
struct SharedTrainer {
  std::mutex busy;
  dictionaries::DictionaryTrainer trainer;

  SharedTrainer(std::unique_ptr<dictionaries::RowSource> rows, const dictionaries::DictionaryOptions& options,
                const CancelToken& cancel)
      : trainer(std::move(rows), options, cancel) {}
};

/// JavaScript's handle of a dictionary in training.
class DictionaryTrainerObject : public HandleObject<DictionaryTrainerObject, SharedTrainer> {
 public:
  static constexpr napi_type_tag kTag = {0x7461706c696e6505, 0x747261696e657201};
  static constexpr const char* kWhat = "trainer";
  static constexpr const char* kOrigin = "A trainer comes from openDictionaryTrainer().";
  static constexpr auto kConstructor = &AddonData::dictionary_trainer_class;

  static void define(Napi::Env env, Napi::Object exports);
  explicit DictionaryTrainerObject(const Napi::CallbackInfo& info);

 private:
  Napi::Value run(const Napi::CallbackInfo& info);
  Napi::Value evaluate(const Napi::CallbackInfo& info);
  Napi::Value train_error(const Napi::CallbackInfo& info);
  Napi::Value strongest(const Napi::CallbackInfo& info);
  Napi::Value weights(const Napi::CallbackInfo& info);
  Napi::Value state(const Napi::CallbackInfo& info);
};

}  // namespace tapline
