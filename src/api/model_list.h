// The bodies of GET /v1, /v1/models and /v1/models/{id}.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/served_model.h"

namespace ingle {

// {"object":"list","data":[<model>]}
std::string model_list_body(const ServedModel& model);
// One model object, as SDKs expect of /v1/models/{id}.
std::string model_body(const ServedModel& model);
// `model` may be null: it loads.
std::string info_body(
    std::string_view version,
    const ServedModel* model,
    const std::vector<std::string_view>& endpoints);

} // namespace ingle
