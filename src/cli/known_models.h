// The models of this machine, by name.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "cli/environment.h"

namespace ingle {

struct KnownModel {
  // Of a folder in models/, or "org/name" where it is in the hub's cache.
  std::string name;
  std::string folder; // empty: nothing of it can be used
  bool is_cached = false; // in the hub's cache
};

// Those of models/ and then those of the hub's cache, each sorted by name. One
// of the cache has one row, that of refs/main. Errors: kIo.
Result<std::vector<KnownModel>> list_models(const Environment& env);

// What the folder is called: that of a snapshot in a hub's cache by the
// model's name there, others by their own.
std::string name_of_model(const std::string& folder);

// A name that means one model: the whole name, else the part after its slash,
// in large or small letters. Nothing: no model is called that.
// Errors: kInvalidRequest (several are: the message lists them).
Result<std::optional<KnownModel>> find_by_name(
    const std::vector<KnownModel>& models,
    const std::string& name);

// Those whose name has `part` in it, in large or small letters.
std::vector<KnownModel> find_by_part(
    const std::vector<KnownModel>& models,
    const std::string& part);

// "a, b".
std::string names_of(const std::vector<KnownModel>& models);

// "'x' means several models: a, b; ...".
Status ambiguous(
    const std::string& argument,
    const std::vector<KnownModel>& candidates);

} // namespace ingle
