// /v1/adapters: what is mounted, and what may be.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "engine/adapters.h"

namespace ingle {

// {"id", "path"} -> {"id", "mounted_layers", "rank", "scale"}; layers are the
// modules that the adapter adds something to.
// Errors: kInvalidRequest, naming the field; kIo.
Result<std::string> mount_adapter(std::string_view body, Adapters& adapters);

// -> {"id", "removed_layers"}. Errors: kNotFound.
Result<std::string> unmount_adapter(const std::string& id, Adapters& adapters);

// {"object": "list", "data": [{"id", "mounted_layers", "rank", "scale", "path",
// "size_bytes"}]}.
std::string mounted_adapters_body(const Adapters& adapters);

// {"object": "list", "data": [{"id", "path", "scale", "rank", "baseModel"}]}.
std::string available_adapters_body(const Adapters& adapters);

} // namespace ingle
