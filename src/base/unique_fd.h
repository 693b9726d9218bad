// The only owner of a file descriptor.
#pragma once

#include <utility>

namespace ingle {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    reset(std::exchange(other.fd_, -1));
    return *this;
  }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd() {
    reset();
  }

  // True iff a descriptor is owned.
  bool is_open() const {
    return fd_ >= 0;
  }
  int get() const {
    return fd_;
  }
  void reset(int fd = -1);
  // Closes and returns 0, or errno where close() failed.
  int close();

 private:
  int fd_ = -1;
};

} // namespace ingle
