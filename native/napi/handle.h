#pragma once

#include <memory>
#include <string>
#include <utility>

#include "napi/errors.h"
#include "napi/setup.h"
#include "napi/worker.h"

namespace tapline {

/// Gives up a share of something that takes a while to free: not on the JavaScript thread.
template <class Held>
struct Release {
  std::shared_ptr<Held> held;

  void execute(const CancelToken&) { held.reset(); }
  Napi::Value result(Napi::Env env) { return env.Undefined(); }
};

/// A class of the module around something native, a Held. Operations hold their own share of it, so it is
/// freed when the last of them is done, never under one. JavaScript cannot construct a Class: wrap() passes
/// what it holds through an external with Class's tag.
///
/// A Class has
///   static constexpr napi_type_tag kTag;    // its own
///   static constexpr const char* kWhat;     // what it is, for a person: "model"
///   static constexpr const char* kOrigin;   // where one comes from, as a sentence
///   static constexpr Napi::FunctionReference AddonData::*kConstructor;
template <class Class, class Held>
class HandleObject : public GuardedObject<Class> {
 public:
  static Napi::Object wrap(Napi::Env env, std::shared_ptr<Held> held) {
    auto external = Napi::External<std::shared_ptr<Held>>::New(env, &held);
    external.TypeTag(&Class::kTag);
    return (AddonData::of(env).*Class::kConstructor).Value().New({external});
  }

 protected:
  explicit HandleObject(const Napi::CallbackInfo& info) : GuardedObject<Class>(info) {
    using External = Napi::External<std::shared_ptr<Held>>;
    if (info.Length() != 1 || !info[0].IsExternal() || !info[0].As<External>().CheckTypeTag(&Class::kTag)) {
      Napi::TypeError::New(info.Env(), Class::kOrigin).ThrowAsJavaScriptException();
      return;
    }
    held_ = std::move(*info[0].As<External>().Data());
  }

  /// Sets the JavaScript object's property `info` to describe(held, env), unless the construction failed.
  template <class Describe>
  void set_info(const Napi::CallbackInfo& info, const Describe& describe) {
    if (!held_) return;
    guarded(info.Env(), [&]() -> Napi::Value {
      info.This().As<Napi::Object>().Set("info", describe(*held_, info.Env()));
      return {};
    });
  }

  static void define_class(Napi::Env env, const char* name,
                           const std::initializer_list<Napi::ClassPropertyDescriptor<Class>>& methods) {
    AddonData::of(env).*Class::kConstructor = Napi::Persistent(Class::DefineClass(env, name, methods));
  }

  /// For define_class(): a method that gives a promise, rejected once closed.
  template <Napi::Value (Class::*method)(const Napi::CallbackInfo&)>
  static Napi::ClassPropertyDescriptor<Class> while_open(const char* name) {
    return Class::InstanceMethod(name, &HandleObject::template guarded_while_open<method>);
  }

  /// For define_class(): close() drops this object's share. It may be called again.
  static Napi::ClassPropertyDescriptor<Class> closing() {
    return Class::InstanceMethod("close", &HandleObject::guarded_close);
  }

  std::shared_ptr<Held> held_;  // null after close()

 private:
  template <Napi::Value (Class::*method)(const Napi::CallbackInfo&)>
  Napi::Value guarded_while_open(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    return guarded(env, [&]() -> Napi::Value {
      if (held_) return (static_cast<Class*>(this)->*method)(info);
      return rejected(env, ErrorCode::kClosed, std::string("The ") + Class::kWhat + " is closed.");
    });
  }

  Napi::Value guarded_close(const Napi::CallbackInfo& info) {
    return guarded(info.Env(), [&] { return run_async(info.Env(), Release<Held>{std::move(held_)}); });
  }
};

}  // namespace tapline
