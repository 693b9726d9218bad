# Everything that is not ours. Versions are pinned in scripts/versions.

find_package(Threads REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(spdlog REQUIRED)
find_package(CLI11 REQUIRED)
find_package(Boost 1.81 REQUIRED)

execute_process(
  COMMAND "${INGLE_PYTHON}" -m mlx --cmake-dir
  OUTPUT_VARIABLE mlx_root
  OUTPUT_STRIP_TRAILING_WHITESPACE
  RESULT_VARIABLE mlx_missing)
if(mlx_missing)
  message(FATAL_ERROR
    "No MLX wheel in ${INGLE_PYTHON}: run scripts/setup, or set INGLE_PYTHON")
endif()
find_package(MLX CONFIG REQUIRED PATHS "${mlx_root}" NO_DEFAULT_PATH)

# ingle_mlx is MLX as we link it. The Linux wheel brings the reference BLAS;
# OpenBLAS, linked first, takes over its symbols: 10 to 25 times faster.
add_library(ingle_mlx INTERFACE)
target_include_directories(ingle_mlx SYSTEM INTERFACE ${MLX_INCLUDE_DIRS})
if(APPLE)
  target_link_libraries(ingle_mlx INTERFACE ${MLX_LIBRARY}) # not run here
else()
  find_library(INGLE_OPENBLAS NAMES openblas REQUIRED)
  target_link_options(ingle_mlx INTERFACE LINKER:--no-as-needed)
  target_link_libraries(ingle_mlx INTERFACE ${INGLE_OPENBLAS} ${MLX_LIBRARY})
endif()

if(INGLE_DEVELOPER)
  find_package(GTest REQUIRED)
endif()
