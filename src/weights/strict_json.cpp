#include "weights/strict_json.h"

#include <utility>
#include <vector>

#include "weights/tensor.h"

namespace ingle {
namespace {

using nlohmann::json;

// Builds the document and stops at the first thing that strict reading
// refuses. The library's own callback form looks at every sibling once more
// for each object, which a hostile file makes quadratic.
class StrictBuilder final : public nlohmann::json_sax<json> {
 public:
  json root;
  std::string problem; // empty while all is well

  bool null() override {
    return add(nullptr);
  }
  bool boolean(bool value) override {
    return add(value);
  }
  bool number_integer(number_integer_t value) override {
    return add(value);
  }
  bool number_unsigned(number_unsigned_t value) override {
    return add(value);
  }
  bool number_float(number_float_t value, const string_t&) override {
    return add(value);
  }
  bool string(string_t& value) override {
    return add(std::move(value));
  }
  bool binary(binary_t&) override {
    return false; // JSON text has none
  }
  bool start_object(std::size_t) override {
    return open(json::object());
  }
  bool start_array(std::size_t) override {
    return open(json::array());
  }
  bool end_object() override {
    open_.pop_back();
    return true;
  }
  bool end_array() override {
    open_.pop_back();
    return true;
  }
  bool key(string_t& name) override {
    const auto [entry, is_new] =
        open_.back()->get_ref<json::object_t&>().emplace(name, nullptr);
    if (!is_new) {
      problem = "JSON key " + quote_name(name) + " stands twice";
      return false;
    }
    slot_ = &entry->second;
    return true;
  }
  bool parse_error(
      std::size_t position,
      const std::string&,
      const nlohmann::detail::exception&) override {
    problem = "not valid JSON (at byte " + std::to_string(position) + ")";
    return false;
  }

 private:
  json* place(json value) {
    if (open_.empty()) {
      root = std::move(value);
      return &root;
    }
    if (open_.back()->is_array()) {
      auto& items = open_.back()->get_ref<json::array_t&>();
      items.push_back(std::move(value));
      return &items.back();
    }
    *slot_ = std::move(value);
    return slot_;
  }
  bool add(json value) {
    place(std::move(value));
    return true;
  }
  bool open(json container) {
    if (open_.size() >= kMaxJsonDepth) {
      problem = "JSON is nested too deeply";
      return false;
    }
    // The pointers stay valid: an array grows only while it is the innermost
    // open container, and an object's nodes don't move.
    open_.push_back(place(std::move(container)));
    return true;
  }

  std::vector<json*> open_;
  json* slot_ = nullptr; // where the value of the last key goes
};

} // namespace

Result<json> parse_strict_json(
    std::string_view text,
    const std::string& origin) {
  StrictBuilder builder;
  if (!json::sax_parse(text, &builder)) {
    return Status::corruption(origin + ": " + builder.problem);
  }
  return std::move(builder.root);
}

} // namespace ingle
