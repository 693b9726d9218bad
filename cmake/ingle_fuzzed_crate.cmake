# The crate of src/text/rust for the fuzzers, in a build of its own: libFuzzer
# sees its branches and comparisons, and the C in it (Oniguruma, which compiles
# what a tokenizer.json says) runs under ASan.

execute_process(COMMAND "${INGLE_CARGO}" -vV OUTPUT_VARIABLE cargo_version)
string(REGEX MATCH "host: ([^\n]+)" _ "${cargo_version}")
set(host "${CMAKE_MATCH_1}")
string(REPLACE "-" "_" host_name "${host}")

set(crate_build "${PROJECT_BINARY_DIR}/cargo")
set(crate_output "${crate_build}/${host}/release")
# Cargo spares its build scripts the flags where a target is named.
set(crate_target --target "${host}")
list(APPEND crate_environment
  "CC_${host_name}=${CMAKE_C_COMPILER}"
  "CFLAGS_${host_name}=-fsanitize=fuzzer-no-link,address -g1"
  "RUSTFLAGS=-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=3 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
-Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares")
