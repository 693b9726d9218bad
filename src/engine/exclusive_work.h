// Work that needs the engine for itself.
#pragma once

#include <chrono>
#include <functional>

namespace ingle {

// Either `run` or `give_up` is called, once, on the engine's thread.
struct ExclusiveWork {
  std::function<void()> run;
  std::function<void()> give_up; // it was not its turn by the deadline
  std::chrono::steady_clock::time_point deadline; // looked at between steps
};

} // namespace ingle
