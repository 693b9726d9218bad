#include "text/chat_template.h"

#include <chrono>

#include "text/boundary.h"

namespace ingle {

namespace {

class RustTemplate final : public ChatTemplate {
 public:
  RustTemplate(IngleTemplate* handle, std::string origin, const Clock& clock)
      : handle_(handle), origin_(std::move(origin)), clock_(clock) {}
  ~RustTemplate() override {
    ingle_template_free(handle_);
  }
  RustTemplate(const RustTemplate&) = delete;
  RustTemplate& operator=(const RustTemplate&) = delete;

  Result<std::string> render(std::string_view context_json) const override {
    auto now = std::chrono::floor<std::chrono::seconds>(clock_.since_epoch());
    RustText text;
    IngleTextCode code = ingle_template_render(
        handle_,
        context_json.data(),
        context_json.size(),
        now.count(),
        text.out());
    Status status = status_of(code, text, StatusCode::kInvalidRequest, origin_);
    if (status.code() == StatusCode::kInvalidRequest) {
      return std::move(status).with_reason("template_error");
    }
    INGLE_RETURN_IF_ERROR(std::move(status));
    return text.str();
  }

 private:
  IngleTemplate* handle_; // owned
  std::string origin_;
  const Clock& clock_;
};

} // namespace

Result<std::shared_ptr<const ChatTemplate>> ChatTemplate::compile(
    std::string_view source,
    const std::string& origin,
    const Clock& clock) {
  IngleTemplate* handle = nullptr;
  RustText message;
  IngleTextCode code = ingle_template_create(
      source.data(), source.size(), &handle, message.out());
  INGLE_RETURN_IF_ERROR(
      status_of(code, message, StatusCode::kCorruption, origin));
  return std::shared_ptr<const ChatTemplate>(
      std::make_shared<RustTemplate>(handle, origin, clock));
}

} // namespace ingle
