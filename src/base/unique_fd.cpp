#include "base/unique_fd.h"

#include <cerrno>

#include <unistd.h>

namespace ingle {

void UniqueFd::reset(int fd) {
  if (fd_ >= 0) {
    ::close(fd_);
  }
  fd_ = fd;
}

int UniqueFd::close() {
  if (fd_ < 0) {
    return 0;
  }
  return ::close(std::exchange(fd_, -1)) == 0 ? 0 : errno;
}

} // namespace ingle
