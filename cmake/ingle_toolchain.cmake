# The dialect, and the warnings of our own code only.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

find_program(INGLE_CCACHE ccache)
if(INGLE_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER "${INGLE_CCACHE}")
  set(CMAKE_CXX_COMPILER_LAUNCHER "${INGLE_CCACHE}")
endif()

add_library(ingle_warnings INTERFACE)
target_compile_options(ingle_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wold-style-cast
  -Wcast-qual -Woverloaded-virtual -Wundef -Wvla)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 finds it in std::string operator+ (GCC bug 105651).
  target_compile_options(ingle_warnings INTERFACE -Wno-restrict)
endif()
if(INGLE_DEVELOPER)
  target_compile_options(ingle_warnings INTERFACE -Werror)
endif()

# Recovering sanitizers exit with 0: a finding has to abort.
if(INGLE_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all
    -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
elseif(INGLE_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
elseif(INGLE_SANITIZE STREQUAL "fuzz")
  # clang 14 cannot assemble the check of function types in coroutines.
  add_compile_options(-fsanitize=fuzzer-no-link,address,undefined
    -fno-sanitize=function -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
elseif(INGLE_SANITIZE)
  message(FATAL_ERROR
    "INGLE_SANITIZE is '${INGLE_SANITIZE}': use 'address', 'thread', 'fuzz' or "
    "nothing")
endif()
