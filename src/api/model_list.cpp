#include "api/model_list.h"

#include "api/json_reader.h"

namespace ingle {
namespace {

Json model_object(const ServedModel& model) {
  using std::chrono::duration_cast;
  Json object;
  object["id"] = model.name;
  object["object"] = "model";
  object["created"] =
      duration_cast<std::chrono::seconds>(model.created).count();
  object["owned_by"] = "ingle";
  object["context_window"] = model.usable_context();
  return object;
}

} // namespace

std::string model_list_body(const ServedModel& model) {
  Json list;
  list["object"] = "list";
  list["data"] = Json::array({model_object(model)});
  return to_text(list);
}

std::string model_body(const ServedModel& model) {
  return to_text(model_object(model));
}

std::string info_body(
    std::string_view version,
    const ServedModel* model,
    const std::vector<std::string_view>& endpoints) {
  Json info;
  info["name"] = "ingle";
  info["version"] = version;
  info["model"] = model == nullptr ? Json(nullptr) : Json(model->name);
  info["endpoints"] = endpoints;
  return to_text(info);
}

} // namespace ingle
