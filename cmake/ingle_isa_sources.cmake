# ingle_isa_sources(<variable> <prefix>)
#
# Sets the variable to the sources <prefix>_<isa>.cpp that this processor's
# family has, and compiles each for its instruction set: to be chosen at run
# time. The same operations in the same order on all: no contraction but by
# fma().
function(ingle_isa_sources variable prefix)
  set(portable "${prefix}_portable.cpp")
  set(sources ${portable})
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    list(APPEND sources "${prefix}_avx2.cpp" "${prefix}_avx512.cpp")
    set_source_files_properties("${prefix}_avx2.cpp" PROPERTIES
      COMPILE_OPTIONS "-mavx2;-mfma;-mf16c")
    # GCC 12 finds its own intrinsics' undefined registers (GCC bug 105593).
    set_source_files_properties("${prefix}_avx512.cpp" PROPERTIES
      COMPILE_OPTIONS
      "-mavx512f;-mavx512bw;-mavx512vl;-mavx512dq;-mavx512vnni;-Wno-uninitialized;-Wno-maybe-uninitialized")
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
    list(APPEND sources "${prefix}_neon.cpp")
    # GCC's first scheduling, which others do not have, moves loads up until
    # sums are out of their registers: a third more instructions.
    set_source_files_properties("${prefix}_neon.cpp" PROPERTIES COMPILE_OPTIONS
      "-march=armv8.2-a+dotprod;$<$<CXX_COMPILER_ID:GNU>:-fno-schedule-insns>")
  endif()
  set_property(SOURCE ${sources} APPEND PROPERTY COMPILE_OPTIONS
    -ffp-contract=off -O2)
  set_property(SOURCE ${portable} APPEND PROPERTY COMPILE_OPTIONS
    -Wno-psabi) # registers that are structs
  if(INGLE_SANITIZE)
    # Instrumented, these take many minutes to compile: the portable form alone
    # is, and not for undefined behaviour. The others give the same bits.
    set_property(SOURCE ${portable} APPEND PROPERTY COMPILE_OPTIONS
      -O1 -fno-sanitize=undefined)
    list(REMOVE_ITEM sources ${portable})
    set_property(SOURCE ${sources} APPEND PROPERTY COMPILE_OPTIONS
      -fno-sanitize=all)
    list(APPEND sources ${portable})
  endif()
  set(${variable} ${sources} PARENT_SCOPE)
endfunction()
