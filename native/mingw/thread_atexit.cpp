// Only for MinGW. Its GCC frees a thread's variables before it destroys them (GCC bug 83562): both happen
// when the thread's pthread keys are destroyed, in the order in which the keys were created, and GCC creates
// that of the memory first. This function takes the place of GCC's, with a key from before all others.

#include <pthread.h>

#include <new>

namespace {

struct Destruction {
  void (*destroy)(void*);
  void* object;
  Destruction* earlier;
};

pthread_key_t key;

/// The last one first.
void destroy_all(void* last) {
  for (auto* each = static_cast<Destruction*>(last); each != nullptr;) {
    each->destroy(each->object);
    Destruction* const earlier = each->earlier;
    delete each;
    each = earlier;
  }
}

/// The first priority that programs may use.
__attribute__((constructor(101))) void create_key() {
  pthread_key_create(&key, destroy_all);
}

}  // namespace

/// Called for each variable that a thread has initialized.
extern "C" int __cxa_thread_atexit(void (*destroy)(void*), void* object, void* /*library*/) noexcept {
  auto* const last = static_cast<Destruction*>(pthread_getspecific(key));
  auto* const each = new (std::nothrow) Destruction{destroy, object, last};
  if (each == nullptr) return -1;
  return pthread_setspecific(key, each) == 0 ? 0 : -1;
}
