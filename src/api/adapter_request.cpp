#include "api/adapter_request.h"

#include "api/json_reader.h"

namespace ingle {
namespace {

Result<std::string> get_text(const JsonObject& body, const char* key) {
  INGLE_ASSIGN_OR_RETURN(auto text, body.get_string(key));
  if (!text || text->empty()) {
    return missing_field(key, "a string");
  }
  return *std::move(text);
}

Json mounted_json(const MountedAdapter& adapter) {
  Json object;
  object["id"] = adapter.id;
  object["mounted_layers"] = adapter.modules;
  object["rank"] = adapter.rank;
  object["scale"] = adapter.scale;
  return object;
}

std::string list_of(Json data) {
  Json list;
  list["object"] = "list";
  list["data"] = std::move(data);
  return to_text(list);
}

} // namespace

Result<std::string> mount_adapter(std::string_view body, Adapters& adapters) {
  INGLE_ASSIGN_OR_RETURN(const Json json, parse_json(body));
  INGLE_ASSIGN_OR_RETURN(const auto object, JsonObject::from(json, ""));
  INGLE_ASSIGN_OR_RETURN(const std::string id, get_text(object, "id"));
  INGLE_ASSIGN_OR_RETURN(const std::string path, get_text(object, "path"));
  INGLE_ASSIGN_OR_RETURN(const auto mounted, adapters.mount(id, path));
  return to_text(mounted_json(mounted));
}

Result<std::string> unmount_adapter(const std::string& id, Adapters& adapters) {
  INGLE_ASSIGN_OR_RETURN(const auto removed, adapters.unmount(id));
  Json object;
  object["id"] = removed.id;
  object["removed_layers"] = removed.modules;
  return to_text(object);
}

std::string mounted_adapters_body(const Adapters& adapters) {
  Json data = Json::array();
  for (const MountedAdapter& adapter : adapters.mounted()) {
    Json object = mounted_json(adapter);
    object["path"] = adapter.path;
    object["size_bytes"] = adapter.bytes;
    data.push_back(std::move(object));
  }
  return list_of(std::move(data));
}

std::string available_adapters_body(const Adapters& adapters) {
  Json data = Json::array();
  for (const AvailableAdapter& adapter : adapters.available()) {
    Json object;
    object["id"] = adapter.id;
    object["path"] = adapter.path;
    object["scale"] = adapter.scale;
    object["rank"] = adapter.rank;
    object["baseModel"] =
        adapter.base_model.empty() ? Json(nullptr) : Json(adapter.base_model);
    data.push_back(std::move(object));
  }
  return list_of(std::move(data));
}

} // namespace ingle
