// Each check of .clang-tidy finds something here; lint.py asserts it. This file
// is never built.
#include <coroutine>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "definition.h" // misc-definitions-in-headers

// clang-format off
#include <cstddef> // readability-duplicate-include
// clang-format on

namespace ingle {

struct Task {
  struct promise_type {
    Task get_return_object() {
      return {};
    }
    std::suspend_never initial_suspend() {
      return {};
    }
    std::suspend_always final_suspend() noexcept {
      return {};
    }
    void return_void() {}
    void unhandled_exception() {}
  };
};

void clang_diagnostic() {
  int unused;
}

size_t bugprone_use_after_move() {
  std::string text(40, 'x');
  std::string other = std::move(text);
  return text.size() + other.size();
}

std::string_view bugprone_dangling_handle() {
  std::string_view view = std::string("gone");
  return view;
}

struct UndelegatedConstructor {
  UndelegatedConstructor() = default;
  UndelegatedConstructor(int) {
    UndelegatedConstructor();
  }
};

size_t bugprone_implicit_widening(int rows, int columns) {
  size_t count = rows * columns;
  return count;
}

size_t bugprone_misplaced_widening_cast(unsigned rows) {
  return static_cast<size_t>(rows * 1000);
}

double bugprone_integer_division(int a, int b) {
  return a / b;
}

void bugprone_sizeof_expression(char* out) {
  std::memset(out, 0, sizeof(sizeof(out)));
}

bool bugprone_inc_dec_in_conditions(int i) {
  return i < 0 && ++i > 0;
}

template <typename T>
T bugprone_move_forwarding_reference(T&& value) {
  return T(std::move(value));
}

bool misc_redundant_expression(int a) {
  return a == 1 && a == 1;
}

Task misc_coroutine_hostile_raii(std::mutex& mutex) {
  std::lock_guard<std::mutex> lock(mutex);
  co_await std::suspend_always();
}

void avoid_capturing_lambda_coroutines(int value) {
  auto run = [value]() -> Task {
    co_await std::suspend_always();
    (void)value;
  };
  run();
}

size_t performance_for_range_copy(const std::vector<std::string>& names) {
  size_t bytes = 0;
  for (const std::string name : names) {
    bytes += name.size();
  }
  return bytes;
}

struct FromString {
  FromString(const std::string& value) : text(value) {}
  std::string text;
};

size_t implicit_conversion_in_loop(const std::vector<std::string>& names) {
  size_t bytes = 0;
  for (const FromString& name : names) {
    bytes += name.text.size();
  }
  return bytes;
}

std::string performance_move_const_arg(const std::string& text) {
  return std::move(text);
}

struct ThrowingMove {
  ThrowingMove(ThrowingMove&& other) : text(std::move(other.text)) {}
  std::string text;
};

size_t performance_unnecessary_copy(const std::vector<std::string>& names) {
  const std::string first = names.front();
  return first.size();
}

int* modernize_use_nullptr() {
  return 0;
}

struct Base {
  virtual ~Base() = default;
  virtual int modernize_use_override();
};

struct Derived : Base {
  virtual int modernize_use_override();
};

void readabilityIdentifierNaming();

// clang-format off
int readability_function_size(int a) {





























































































































  return a;
}
// clang-format on

} // namespace ingle

class __attribute__((capability("mutex"))) Lock {};

struct Guarded {
  Lock lock;
  int value __attribute__((guarded_by(lock)));
};

int read_unlocked(const Guarded& guarded) {
  return guarded.value;
}
