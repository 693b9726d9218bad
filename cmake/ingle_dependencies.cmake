# Everything that is not ours. Versions are pinned in scripts/versions.

find_package(Threads REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(spdlog REQUIRED)
find_package(CLI11 REQUIRED)
find_package(Boost 1.81 REQUIRED)
find_package(CURL 7.87 REQUIRED)
find_package(OpenSSL 3 REQUIRED COMPONENTS Crypto)
find_path(LIBEDIT_INCLUDE_DIR histedit.h REQUIRED)
find_library(LIBEDIT_LIBRARY edit REQUIRED)
add_library(libedit INTERFACE IMPORTED)
target_include_directories(libedit INTERFACE "${LIBEDIT_INCLUDE_DIR}")
target_link_libraries(libedit INTERFACE "${LIBEDIT_LIBRARY}")
# Its package asks for what other parts of it need.
find_path(PROMETHEUS_INCLUDE_DIR prometheus/registry.h REQUIRED)
find_library(PROMETHEUS_CORE_LIBRARY prometheus-cpp-core REQUIRED)
find_path(XXHASH_INCLUDE_DIR xxhash.h REQUIRED) # compiled into its user
add_library(xxhash INTERFACE IMPORTED)
target_include_directories(xxhash INTERFACE "${XXHASH_INCLUDE_DIR}")

execute_process(
  COMMAND "${INGLE_PYTHON}" -m mlx --cmake-dir
  OUTPUT_VARIABLE INGLE_MLX_ROOT
  OUTPUT_STRIP_TRAILING_WHITESPACE
  RESULT_VARIABLE mlx_missing)
if(mlx_missing)
  message(FATAL_ERROR
    "No MLX wheel in ${INGLE_PYTHON}: run scripts/setup, or set INGLE_PYTHON")
endif()
include(ingle_mlx)

if(INGLE_DEVELOPER)
  find_package(GTest REQUIRED)
  find_package(benchmark REQUIRED)
endif()
