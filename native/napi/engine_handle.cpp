#include "napi/engine_handle.h"

#include <system_error>
#include <utility>

#include "base/error.h"
#include "napi/addon_data.h"
#include "napi/plan_args.h"
#include "napi/results.h"

namespace tapline {

std::shared_ptr<EngineHandle> EngineHandle::create(Napi::Env env, EngineOptions options,
                                                   Napi::Function on_failure, Napi::Function on_progress) {
  std::shared_ptr<EngineHandle> handle(new EngineHandle(std::move(options), on_failure, on_progress));
  handle->attach(env, handle);
  return handle;
}

EngineHandle::EngineHandle(EngineOptions options, Napi::Function on_failure, Napi::Function on_progress)
    : on_failure_(on_failure), on_progress_(on_progress) {
  engine_ = std::make_unique<Engine>(
      std::move(options),
      [this](RequestId id, Event&& event) {
        auto shared = std::make_shared<const Event>(std::move(event));
        post([this, id, shared](Napi::Env js) { settle_read(js, id, *shared); });
      },
      [this](const std::string& sentence) {
        post([this, sentence](Napi::Env js) { on_failure_.call({Napi::String::New(js, sentence)}); });
      });
}

void EngineHandle::attach(Napi::Env env, std::shared_ptr<EngineHandle> self) {
  const auto finalize = [](napi_env, void* owner, void*) {
    delete static_cast<std::shared_ptr<EngineHandle>*>(owner);
  };
  auto* owner = new std::shared_ptr<EngineHandle>(std::move(self));
  napi_create_threadsafe_function(env, nullptr, nullptr, Napi::String::New(env, "tapline engine"), 0, 1,
                                  owner, finalize, this, on_calls, &wake_);
  napi_unref_threadsafe_function(env, wake_);
  napi_add_env_cleanup_hook(env, on_teardown, this);
  AddonData::of(env).engines.insert(this);
}

void EngineHandle::end_all(Napi::Env env) {
  for (EngineHandle* handle : std::exchange(AddonData::of(env).engines, {})) handle->teardown();
}

EngineHandle::~EngineHandle() = default;

void EngineHandle::report(const std::string& stage, double fraction) {
  post([this, stage, fraction](Napi::Env js) {
    on_progress_.call({Napi::String::New(js, stage), Napi::Number::New(js, fraction)});
  });
}

void EngineHandle::post(std::function<void(Napi::Env)> function) {
  const std::lock_guard<std::mutex> lock(calls_mutex_);
  if (silent_) return;
  calls_.push_back(std::move(function));
  // One wake-up for everything that is posted before JavaScript handles it.
  if (calls_.size() == 1) napi_call_threadsafe_function(wake_, nullptr, napi_tsfn_nonblocking);
}

void EngineHandle::on_calls(napi_env env, napi_value, void* self, void*) {
  if (env != nullptr) static_cast<EngineHandle*>(self)->deliver_calls(env);
}

void EngineHandle::deliver_calls(Napi::Env env) {
  std::vector<std::function<void(Napi::Env)>> calls;
  {
    const std::lock_guard<std::mutex> lock(calls_mutex_);
    calls.swap(calls_);
  }
  for (const auto& call : calls) {
    const Napi::HandleScope scope(env);
    const Failure failure = catching([&] { call(env); });
    // Node-API refuses every call while an exception is pending: a callback's exception is reported as
    // uncaught before the next call.
    if (env.IsExceptionPending()) {
      napi_fatal_exception(env, env.GetAndClearPendingException().Value());
    } else if (failure.failed) {
      napi_fatal_exception(env, failure.to_js(env).Value());
    }
  }
}

Napi::Promise EngineHandle::run(Napi::Env env, std::function<void()> work, Settle settle,
                                AfterFailure after_failure) {
  const auto deferred = Napi::Promise::Deferred::New(env);
  if (released_) return deferred.Promise();  // the process is ending: nothing is settled
  const auto job = jobs_.emplace(jobs_.end());
  try {
    job->thread =
        std::thread([this, job, deferred, work = std::move(work), settle = std::move(settle), after_failure] {
          job->failure = catching(work);
          post([this, job, deferred, settle, after_failure](Napi::Env js) {
            job->thread.join();
            const Failure failure = std::move(job->failure);
            jobs_.erase(job);
            settle_promise(js, deferred, failure, [&] { return settle(js); });
            if (failure.failed && after_failure == AfterFailure::kRelease) release(js);
            pending(js, -1);
            release_if_idle(js);
          });
        });
  } catch (const std::system_error&) {
    jobs_.erase(job);
    throw Error(ErrorCode::kOutOfMemory, "The system has no more threads for this process.");
  } catch (...) {
    jobs_.erase(job);
    throw;
  }
  pending(env, 1);
  return deferred.Promise();
}

Napi::Promise EngineHandle::read(Napi::Env env, RequestId id) {
  const auto deferred = Napi::Promise::Deferred::New(env);
  if (!reads_.emplace(id, deferred).second)
    return rejected(env, ErrorCode::kInvalidArgument, "A read of this request is already waiting.");
  pending(env, 1);
  engine_->read(id);
  return deferred.Promise();
}

void EngineHandle::settle_read(Napi::Env env, RequestId id, const Event& event) {
  const auto found = reads_.find(id);
  if (found == reads_.end()) return;
  const Napi::Promise::Deferred deferred = found->second;
  reads_.erase(found);
  if (event.failed) {
    deferred.Reject(Failure{true, event.code, event.sentence}.to_js(env).Value());
  } else {
    Napi::Object object =
        object_of(env, "data", event.data, "tokens",
                  array_of(env, event.tokens, [](int count) { return static_cast<double>(count); }), "times",
                  array_of(env, event.times,
                           [&](const AnswerTime& time) {
                             return object_of(env, "promptMs", time.prompt, "generatedMs", time.generated);
                           }),
                  "done", event.done);
    if (event.status != 0)
      set_fields(object, "status", event.status, "contentType", event.content_type, "stream", event.stream);
    set_nonempty(object, "states", event.states);
    deferred.Resolve(object);
  }
  pending(env, -1);
}

void EngineHandle::pending(Napi::Env env, int change) {
  const bool was = pending_ > 0;
  pending_ += change;
  const bool is = pending_ > 0;
  if (was == is || released_) return;
  if (is) {
    napi_ref_threadsafe_function(env, wake_);
  } else {
    napi_unref_threadsafe_function(env, wake_);
  }
}

void EngineHandle::release(Napi::Env env) {
  release_wanted_ = true;
  release_if_idle(env);
}

void EngineHandle::release_if_idle(Napi::Env env) {
  if (!release_wanted_ || released_ || !jobs_.empty()) return;
  released_ = true;
  {
    const std::lock_guard<std::mutex> lock(calls_mutex_);
    silent_ = true;
  }
  on_failure_.release();
  on_progress_.release();
  AddonData::of(env).engines.erase(this);
  napi_remove_env_cleanup_hook(env, on_teardown, this);
  napi_release_threadsafe_function(wake_, napi_tsfn_release);
}

void EngineHandle::on_teardown(void* self) {
  static_cast<EngineHandle*>(self)->teardown();
}

/// The environment ends without close(). Promises stay unsettled; Node destroys wake_ itself.
void EngineHandle::teardown() {
  if (std::exchange(released_, true)) return;
  {
    const std::lock_guard<std::mutex> lock(calls_mutex_);
    silent_ = true;
    calls_.clear();
  }
  engine_->close();
  for (Job& job : jobs_) job.thread.join();
  jobs_.clear();
  on_failure_.release();
  on_progress_.release();
  reads_.clear();
}

}  // namespace tapline
