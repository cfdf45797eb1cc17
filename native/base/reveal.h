#pragma once

namespace tapline {

/// Accesses a private member of a foreign class: C++ allows naming one in an explicit instantiation.
///
///   struct QueueKey { using Member = std::function<void()> Queue::*; friend Member reveal(QueueKey); };
///   template struct Reveal<QueueKey, &Queue::callback>;
///   … queue.*reveal(QueueKey())
template <class Key, typename Key::Member member>
struct Reveal {
  friend typename Key::Member reveal(Key) { return member; }
};

}  // namespace tapline
