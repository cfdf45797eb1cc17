#pragma once

namespace tapline {

/// Names a private member of a class that is not ours: naming one in an explicit instantiation is plain C++.
///
///   struct QueueKey { using Member = std::function<void()> Queue::*; friend Member reveal(QueueKey); };
///   template struct Reveal<QueueKey, &Queue::callback>;
///   … queue.*reveal(QueueKey())
template <class Key, typename Key::Member member>
struct Reveal {
  friend typename Key::Member reveal(Key) { return member; }
};

}  // namespace tapline
