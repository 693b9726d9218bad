// How much all requests together may hold in bodies that are not parsed yet.
#pragma once

#include <atomic>
#include <cstddef>

namespace ingle {

// Threads: any. Outlives its shares.
class BodyBudget {
 public:
  // What one request holds; given back on destruction. Threads: one.
  class Share {
   public:
    explicit Share(BodyBudget& budget) : budget_(budget) {}
    ~Share() {
      release();
    }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

    // False: so many are not left, and the share is as it was.
    bool grow_to(size_t bytes) {
      if (bytes > bytes_ && !budget_.take(bytes - bytes_)) {
        return false;
      }
      bytes_ = bytes > bytes_ ? bytes : bytes_;
      return true;
    }
    void release() {
      budget_.used_ -= bytes_;
      bytes_ = 0;
    }

   private:
    BodyBudget& budget_;
    size_t bytes_ = 0;
  };

  explicit BodyBudget(size_t bytes) : limit_(bytes) {}

 private:
  bool take(size_t bytes) {
    size_t used = used_;
    do {
      if (bytes > limit_ - used) {
        return false;
      }
    } while (!used_.compare_exchange_weak(used, used + bytes));
    return true;
  }

  const size_t limit_;
  std::atomic<size_t> used_{0};
};

} // namespace ingle
