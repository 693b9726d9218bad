#include "text/harmony_router.h"

#include <optional>
#include <utility>

#include "text/call_segment.h"
#include "text/special_bytes.h"

namespace ingle {
namespace {

constexpr size_t kMaxHeader = 512; // bytes

class HarmonyRouter final : public OutputRouter {
 public:
  HarmonyRouter(const OutputMarkup& markup, OutputRouting routing)
      : bytes_(markup),
        routing_(std::move(routing)),
        start_(bytes_.marker("<|start|>")),
        channel_(bytes_.marker("<|channel|>")),
        message_(bytes_.marker("<|message|>")) {}

  RoutedText push(TokenId id, std::string_view text) override {
    for (const char c : bytes_.encode(id, text)) {
      if (!is_done()) {
        take(c);
      }
    }
    return std::exchange(out_, {});
  }

  RoutedText flush() override {
    if (segment_) {
      end_call();
    }
    return std::exchange(out_, {});
  }

  bool is_thinking() const override {
    return mode_ == Mode::kThought;
  }
  size_t calls() const override {
    return calls_;
  }
  bool is_done() const override {
    return routing_.one_call && calls_ > 0;
  }

 private:
  enum class Mode { kHeader, kThought, kContent, kCall, kAfterCall };

  void take(char c) {
    if (is(c, start_)) {
      end_message();
      after_start_ = true;
      return;
    }
    if (mode_ == Mode::kHeader) {
      header(c);
    } else if (SpecialBytes::is_special(c)) {
      end_message(); // <|end|>, <|call|>
    } else {
      body(c);
    }
  }

  static bool is(char c, const std::string& marker) {
    return marker.size() == 1 && c == marker.front();
  }

  void header(char c) {
    const bool may_begin = after_start_ || c == ' ' || is(c, channel_) ||
        SpecialBytes::is_special(c);
    if (header_.empty() && !may_begin) {
      mode_ = Mode::kContent;
      body(c);
    } else if (is(c, message_)) {
      begin_message();
    } else if (header_.size() < kMaxHeader) {
      header_ += c;
    } else {
      mode_ = Mode::kContent;
      out_.content += bytes_.spelled(header_) + bytes_.spelled({&c, 1});
    }
  }

  // The word behind `key` in the header.
  std::string_view word_behind(std::string_view key) const {
    const size_t at = header_.find(key);
    if (at == std::string::npos) {
      return {};
    }
    const std::string_view rest =
        std::string_view(header_).substr(at + key.size());
    size_t size = 0;
    while (size < rest.size() && rest[size] != ' ' &&
           !SpecialBytes::is_special(rest[size])) {
      ++size;
    }
    return rest.substr(0, size);
  }

  void begin_message() {
    const std::string_view tool = word_behind("to=functions.");
    if (!tool.empty() && routing_.tools != nullptr) {
      begin_call(tool);
      return;
    }
    const bool is_thought =
        routing_.splits_thoughts && word_behind(channel_) == "analysis";
    mode_ = is_thought ? Mode::kThought : Mode::kContent;
  }

  void begin_call(std::string_view tool) {
    CallSegment::Form form;
    form.calls = CallSegment::Calls::kNamed;
    segment_.emplace(form, *routing_.tools, bytes_, next_index_);
    mode_ = Mode::kCall;
    call_text_ = header_ + message_;
    for (const char c : std::string(tool) + "\n") {
      call(c);
    }
  }

  void body(char c) {
    switch (mode_) {
      case Mode::kThought:
        out_.reasoning += c;
        break;
      case Mode::kContent:
        out_.content += c;
        break;
      case Mode::kCall:
        call_text_ += c;
        call(c);
        break;
      case Mode::kHeader:
      case Mode::kAfterCall:
        break;
    }
  }

  void call(char c) {
    if (!segment_) {
      return; // the name was none of a tool's
    }
    switch (segment_->push(c, out_.calls)) {
      case CallSegment::Step::kMore:
        break;
      case CallSegment::Step::kClosed:
        ++calls_;
        leave_call(Mode::kAfterCall);
        break;
      case CallSegment::Step::kFailed:
        release_call();
        break;
    }
  }

  void release_call() {
    out_.content += bytes_.spelled(call_text_);
    leave_call(Mode::kContent);
  }

  void leave_call(Mode next) {
    next_index_ = segment_->next_index();
    segment_.reset();
    call_text_.clear();
    mode_ = next;
  }

  // In the middle of its arguments.
  void end_call() {
    segment_->finish(out_.calls);
    release_call();
  }

  void end_message() {
    if (segment_) {
      end_call();
    }
    mode_ = Mode::kHeader;
    header_.clear();
    after_start_ = false;
  }

  const SpecialBytes bytes_;
  const OutputRouting routing_;
  const std::string start_;
  const std::string channel_;
  const std::string message_;

  Mode mode_ = Mode::kHeader;
  std::string header_;
  bool after_start_ = false; // its role stands first
  std::optional<CallSegment> segment_;
  std::string call_text_; // the message so far, header included
  size_t calls_ = 0;
  size_t next_index_ = 0;
  RoutedText out_;
};

} // namespace

std::unique_ptr<OutputRouter> make_harmony_router(
    const OutputMarkup& markup,
    OutputRouting routing) {
  return std::make_unique<HarmonyRouter>(markup, std::move(routing));
}

} // namespace ingle
