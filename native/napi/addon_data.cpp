#include "napi/addon_data.h"

namespace tapline {

void AddonData::attach(Napi::Env env) {
  auto* data = new AddonData();
  env.SetInstanceData<AddonData>(data);  // Node-API deletes it after the cleanup hooks have run
  env.AddCleanupHook(
      [](AddonData* self) {
        for (CancelToken& token : self->running_) token.cancel();
      },
      data);
}

}  // namespace tapline
