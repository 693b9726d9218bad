// The only place (with the top of the connection coroutine) that catches.
#pragma once

#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/status.h"

namespace ingle {

// Runs `fn`, which builds *and* evaluates MLX arrays, and turns an exception
// into kInternal, "op: what MLX said". MLX reports a failure of asynchronous
// work where it is evaluated, and only once: after a failure every array that
// `fn` made must be dropped unread.
//
// Threads: the engine thread.
template <typename Fn>
auto run_mlx(const char* op, Fn&& fn) {
  using Value = std::invoke_result_t<Fn>;
  using Return =
      std::conditional_t<std::is_void_v<Value>, Status, Result<Value>>;
  try {
    if constexpr (std::is_void_v<Value>) {
      fn();
      return Return();
    } else {
      return Return(fn());
    }
  } catch (const std::bad_alloc&) {
    return Return(Status::overloaded(std::string(op) + ": out of memory")
                      .with_reason("out_of_memory"));
  } catch (const std::exception& error) {
    // MLX's allocators throw this when they are out of memory.
    if (std::string_view(error.what()).starts_with("[malloc")) {
      return Return(Status::overloaded(std::string(op) + ": " + error.what())
                        .with_reason("out_of_memory"));
    }
    return Return(Status::internal(std::string(op) + ": " + error.what()));
  }
}

} // namespace ingle
