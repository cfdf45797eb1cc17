#include "napi/addon_data.h"

namespace tapline {

void AddonData::attach(Napi::Env env) {
  auto* data = new AddonData();
  env.SetInstanceData<AddonData>(data);  // Node-API deletes it after the cleanup hooks have run
  env.AddCleanupHook([](AddonData* self) { self->operations.close(); }, data);
}

}  // namespace tapline
