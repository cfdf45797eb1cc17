#pragma once

#include <memory>
#include <string>
#include <utility>

#include "napi/worker.h"

namespace tapline {

/// A class of the module around a native object. Operations hold their own share of it, so it is freed when
/// the last of them is done, never during one. JavaScript cannot construct it: wrap() passes the native
/// object through an external with the class's tag.
///
/// A Kind has
///   using Held;                             // the native class
///   static constexpr napi_type_tag kTag;    // unique
///   static constexpr const char* kWhat;     // its name in error messages: "model"
///   static constexpr const char* kOrigin;   // how to get one, as a sentence
///   static constexpr Napi::FunctionReference AddonData::*kConstructor;
///   static Napi::Value describe(Held&, Napi::Env);  // the JavaScript object's property `info`
///   static Napi::Value close(const Call&, std::shared_ptr<Held>&);
template <class Kind>
class HandleObject : public Napi::ObjectWrap<HandleObject<Kind>> {
 public:
  using Shared = std::shared_ptr<typename Kind::Held>;
  using Method = Napi::Value(const Shared& held, const Call& call);
  using Property = Napi::ClassPropertyDescriptor<HandleObject>;

  static Napi::Object wrap(Napi::Env env, Shared held) {
    auto external = Napi::External<Shared>::New(env, &held);
    external.TypeTag(&Kind::kTag);
    return (AddonData::of(env).*Kind::kConstructor).Value().New({external});
  }

  explicit HandleObject(const Napi::CallbackInfo& info) : Napi::ObjectWrap<HandleObject>(info) {
    using External = Napi::External<Shared>;
    if (info.Length() != 1 || !info[0].IsExternal() || !info[0].As<External>().CheckTypeTag(&Kind::kTag)) {
      Napi::TypeError::New(info.Env(), Kind::kOrigin).ThrowAsJavaScriptException();
      return;
    }
    held_ = std::move(*info[0].As<External>().Data());
    guarded(info.Env(), [&]() -> Napi::Value {
      info.This().As<Napi::Object>().Set("info", Kind::describe(*held_, info.Env()));
      return {};
    });
  }

  static void define_class(Napi::Env env, const char* name, std::initializer_list<Property> methods) {
    std::vector<Property> all(methods);
    all.push_back(HandleObject::InstanceMethod("close", &HandleObject::close));
    AddonData::of(env).*Kind::kConstructor = Napi::Persistent(HandleObject::DefineClass(env, name, all));
  }

  /// A method that returns a promise, rejected once closed.
  template <Method* method>
  static Property while_open(const char* name) {
    return HandleObject::InstanceMethod(name, &HandleObject::template call<method, true>);
  }

  /// A method that returns undefined once closed.
  template <Method* method>
  static Property or_undefined(const char* name) {
    return HandleObject::InstanceMethod(name, &HandleObject::template call<method, false>);
  }

 private:
  template <Method* method, bool reject>
  Napi::Value call(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    return guarded(env, [&]() -> Napi::Value {
      if (held_) return method(held_, Call(info));
      if (!reject) return env.Undefined();
      return rejected(env, ErrorCode::kClosed, std::string("The ") + Kind::kWhat + " is closed.");
    });
  }

  Napi::Value close(const Napi::CallbackInfo& info) {
    return guarded(info.Env(), [&] { return Kind::close(Call(info), held_); });
  }

  Shared held_;  // null after close()
};

/// What most kinds do on close(), which may be called again: drop the object's share. Freeing takes a while,
/// so it does not run on the JavaScript thread.
struct HandleKind {
  template <class Held>
  static Napi::Value close(const Call& call, std::shared_ptr<Held>& held) {
    return start(call, [held = std::move(held)]() mutable { held.reset(); });
  }
};

}  // namespace tapline
