// A mutex that clang's thread-safety analysis understands (the lint gate runs
// it): state is declared with INGLE_GUARDED_BY, and touching it unlocked is an
// error.
#pragma once

#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define INGLE_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define INGLE_THREAD_ATTRIBUTE(x)
#endif

#define INGLE_GUARDED_BY(mutex) INGLE_THREAD_ATTRIBUTE(guarded_by(mutex))
#define INGLE_REQUIRES(mutex) INGLE_THREAD_ATTRIBUTE(requires_capability(mutex))

namespace ingle {

class INGLE_THREAD_ATTRIBUTE(capability("mutex")) Mutex {
 public:
  void lock() INGLE_THREAD_ATTRIBUTE(acquire_capability()) {
    mutex_.lock();
  }
  void unlock() INGLE_THREAD_ATTRIBUTE(release_capability()) {
    mutex_.unlock();
  }

 private:
  std::mutex mutex_;
};

// Holds a Mutex for a scope.
class INGLE_THREAD_ATTRIBUTE(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex)
      INGLE_THREAD_ATTRIBUTE(acquire_capability(mutex))
      : mutex_(mutex) {
    mutex_.lock();
  }
  ~MutexLock() INGLE_THREAD_ATTRIBUTE(release_capability()) {
    mutex_.unlock();
  }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// Wait in a loop over the condition.
class ConditionVariable {
 public:
  void wait(Mutex& mutex) INGLE_REQUIRES(mutex) {
    condition_.wait(mutex);
  }
  void notify_all() {
    condition_.notify_all();
  }

 private:
  std::condition_variable_any condition_;
};

} // namespace ingle
