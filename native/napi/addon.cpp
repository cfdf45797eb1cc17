#include <napi.h>
#include "server-context.h"
#include "llama.h"
static Napi::Value Info(const Napi::CallbackInfo& info) {
  auto ctx = std::make_unique<server_context>();
  return Napi::String::New(info.Env(), llama_print_system_info());
}
static Napi::Object Init(Napi::Env env, Napi::Object exports) {
  exports.Set("info", Napi::Function::New(env, Info));
  return exports;
}
NODE_API_MODULE(tapline, Init)
