# ingle_module(<name> SOURCES ... [HEADERS ...] [TESTS ...] [DEPS ...]
#              [PRIVATE_DEPS ...] [TEST_DEPS ...])
#
# One folder, one target ingle_<name>, and one test program <name>_tests.
#
# Headers are included as "<folder>/<file>.h". Each module sees its own folder
# and those of the modules it links, through a directory that holds one link
# per module: including a module that is not a dependency fails to compile.
function(ingle_module name)
  cmake_parse_arguments(arg "" ""
    "SOURCES;HEADERS;TESTS;DEPS;PRIVATE_DEPS;TEST_DEPS" ${ARGN})
  set(target "ingle_${name}")
  set(include_dir "${PROJECT_BINARY_DIR}/include/${name}")
  file(MAKE_DIRECTORY "${include_dir}")
  file(CREATE_LINK "${CMAKE_CURRENT_SOURCE_DIR}" "${include_dir}/${name}"
    SYMBOLIC)

  add_library(${target} STATIC ${arg_SOURCES} ${arg_HEADERS})
  add_library(ingle::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(${target} PUBLIC
    "$<BUILD_INTERFACE:${include_dir}>"
    "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/ingle>")
  target_link_libraries(${target}
    PUBLIC ${arg_DEPS}
    PRIVATE ${arg_PRIVATE_DEPS} "$<BUILD_INTERFACE:ingle_warnings>")
  set_property(GLOBAL APPEND PROPERTY INGLE_MODULES ${name})

  if(INGLE_DEVELOPER AND arg_TESTS)
    add_executable(${name}_tests ${arg_TESTS})
    target_link_libraries(${name}_tests PRIVATE ${target} ${arg_TEST_DEPS}
      ${arg_PRIVATE_DEPS} ingle_warnings GTest::gmock GTest::gtest_main)
    # Tests are built more often than they run.
    target_compile_options(${name}_tests PRIVATE $<$<CONFIG:Release>:-O1>)
    if(INGLE_SANITIZE)
      # A sanitizer takes long to start: one process for all tests.
      add_test(NAME ${name}.all COMMAND ${name}_tests)
      set_tests_properties(${name}.all PROPERTIES LABELS unit TIMEOUT 900)
    else()
      gtest_discover_tests(${name}_tests
        TEST_PREFIX "${name}." DISCOVERY_TIMEOUT 120
        PROPERTIES LABELS unit TIMEOUT 300)
    endif()
  endif()
endfunction()
