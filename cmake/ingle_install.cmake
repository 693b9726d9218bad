# Installs the program, one library for each folder of src/ with its headers as
# ingle/<folder>/<file>.h, and the package that find_package(ingle) reads.
# tests/consumer builds against the result.

include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/ingle")
get_property(modules GLOBAL PROPERTY INGLE_MODULES)
list(REMOVE_ITEM modules cli) # a library for its own tests only

install(TARGETS ingle_generator EXPORT ingleTargets)
foreach(module IN LISTS modules)
  install(TARGETS ingle_${module} EXPORT ingleTargets
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/src/${module}"
    DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/ingle"
    FILES_MATCHING PATTERN "*.h"
    PATTERN testing EXCLUDE
    PATTERN rust EXCLUDE)
endforeach()

if(TARGET ingle)
  # MLX stays in the Python environment that it came with.
  cmake_path(GET MLX_LIBRARY PARENT_PATH mlx_library_dir)
  set_target_properties(ingle PROPERTIES INSTALL_RPATH "${mlx_library_dir}")
  install(TARGETS ingle RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()

configure_package_config_file(
  "${CMAKE_CURRENT_LIST_DIR}/ingleConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/ingleConfig.cmake"
  INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file(
  "${PROJECT_BINARY_DIR}/ingleConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES
  "${PROJECT_BINARY_DIR}/ingleConfig.cmake"
  "${PROJECT_BINARY_DIR}/ingleConfigVersion.cmake"
  "${CMAKE_CURRENT_LIST_DIR}/ingle_mlx.cmake"
  DESTINATION "${package_dir}")
install(EXPORT ingleTargets NAMESPACE ingle:: DESTINATION "${package_dir}")
