# ingle_mlx: MLX as we link it, from the wheel in INGLE_MLX_ROOT. Installed too,
# for those who link our libraries.

find_package(MLX CONFIG REQUIRED PATHS "${INGLE_MLX_ROOT}" NO_DEFAULT_PATH)

if(NOT TARGET ingle_mlx)
  add_library(ingle_mlx INTERFACE IMPORTED)
  target_include_directories(ingle_mlx SYSTEM INTERFACE ${MLX_INCLUDE_DIRS})
  if(APPLE)
    target_link_libraries(ingle_mlx INTERFACE ${MLX_LIBRARY}) # not run here
  else()
    # The Linux wheel brings the reference BLAS; OpenBLAS, linked first, takes
    # over its symbols: 10 to 25 times faster.
    find_library(INGLE_OPENBLAS NAMES openblas REQUIRED)
    target_link_options(ingle_mlx INTERFACE LINKER:--no-as-needed)
    target_link_libraries(ingle_mlx INTERFACE ${INGLE_OPENBLAS} ${MLX_LIBRARY})
  endif()
endif()
