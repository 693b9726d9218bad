#include "text/output_router.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "text/call_segment.h"
#include "text/harmony_router.h"
#include "text/special_bytes.h"
#include "text/white_space.h"

namespace ingle {
namespace {

// What may open something in content.
struct Opener {
  std::string marker; // encoded
  std::optional<CallSegment::Form> calls; // nothing: a thought
  bool is_part_of_call = false;
  bool only_first = false; // in front of all text
};

std::vector<Opener> call_openers(
    OutputFamily family,
    const SpecialBytes& bytes) {
  using Calls = CallSegment::Calls;
  CallSegment::Form form;
  switch (family) {
    case OutputFamily::kTags: {
      CallSegment::Form tags;
      tags.calls = Calls::kTags;
      form.calls = Calls::kJsonOrTags;
      form.trail = bytes.marker("</tool_call>");
      return {
          {bytes.marker("<tool_call>"), form},
          {"<function=", tags, true},
          {"<function name=", tags, true}};
    }
    case OutputFamily::kLlama3:
      form.calls = Calls::kBareJson;
      form.separators = ";";
      form.several = true;
      form.to_the_end = true;
      return {
          {"{", form, true, true},
          {bytes.marker("<|python_tag|>"), form, false, true}};
    case OutputFamily::kMistral:
      form.calls = Calls::kMistral;
      return {{bytes.marker("[TOOL_CALLS]"), form}};
    case OutputFamily::kGemma:
      form.calls = Calls::kGemma;
      form.lead = "call:";
      form.trail = bytes.marker("<tool_call|>");
      form.separators = ",";
      form.several = true;
      return {{bytes.marker("<|tool_call>"), form}};
    case OutputFamily::kHarmony:
      break;
  }
  return {};
}

class MarkupRouter final : public OutputRouter {
 public:
  MarkupRouter(const OutputMarkup& markup, OutputRouting routing)
      : bytes_(markup), routing_(std::move(routing)) {
    if (routing_.tools != nullptr) {
      openers_ = call_openers(markup.family, bytes_);
    }
    const bool is_gemma = markup.family == OutputFamily::kGemma;
    if (routing_.splits_thoughts && markup.thought) {
      const std::string_view open =
          is_gemma ? "<|channel>" : trimmed(markup.thought->open);
      openers_.push_back({bytes_.marker(open), std::nullopt, false, !is_gemma});
      close_ = bytes_.marker(trimmed(markup.thought->close));
      named_thoughts_ = is_gemma;
      mode_ = routing_.starts_in_thought ? Mode::kThought : Mode::kContent;
    }
  }

  RoutedText push(TokenId id, std::string_view text) override {
    for (const char c : bytes_.encode(id, text)) {
      take(c);
    }
    return std::exchange(out_, {});
  }

  RoutedText flush() override {
    if (is_done()) {
      return {};
    }
    if (mode_ == Mode::kThought) {
      out_.reasoning += std::exchange(held_, {});
      return std::exchange(out_, {});
    }
    if (segment_) {
      if (segment_->finish(out_.calls) == CallSegment::Step::kClosed) {
        close_segment();
      } else {
        release_segment();
      }
    }
    while (!held_.empty()) {
      release_first();
    }
    if (!after_call_) {
      out_.content += space_;
    }
    return std::exchange(out_, {});
  }

  bool is_thinking() const override {
    return mode_ == Mode::kThought;
  }
  size_t calls() const override {
    return calls_ + (segment_ ? segment_->calls() : 0);
  }
  bool is_done() const override {
    return routing_.one_call && calls() > 0;
  }

 private:
  enum class Mode { kContent, kThought, kSegment };

  void take(char c) {
    if (is_done()) {
      return;
    }
    switch (mode_) {
      case Mode::kContent:
        held_ += c;
        content();
        break;
      case Mode::kThought:
        thought(c);
        break;
      case Mode::kSegment:
        segment(c);
        break;
    }
  }

  // Gives out what can't be the beginning of a marker.
  void content() {
    while (!held_.empty()) {
      bool may_become_marker = false;
      for (const Opener& opener : openers_) {
        const bool fits = opener.marker.starts_with(held_) &&
            !(opener.only_first && (has_content_ || calls_ > 0));
        if (fits && opener.marker == held_) {
          open(opener);
          return;
        }
        may_become_marker |= fits;
      }
      if (may_become_marker) {
        return;
      }
      release_first();
    }
  }

  void release_first() {
    const char c = held_.front();
    held_.erase(0, 1);
    if (SpecialBytes::is_special(c) && close_ == std::string_view(&c, 1)) {
      return; // of a thought that is not open
    }
    const bool waits =
        is_space(c) && (routing_.tools != nullptr || !has_content_);
    if (waits && !openers_.empty()) {
      space_ += c;
      return;
    }
    out_.content += std::exchange(space_, {}) + bytes_.spelled({&c, 1});
    has_content_ = true;
    after_call_ = false;
  }

  void open(const Opener& opener) {
    const std::string marker = std::exchange(held_, {});
    if (!opener.calls) {
      space_.clear();
      mode_ = Mode::kThought;
      in_name_ = named_thoughts_;
      return;
    }
    segment_.emplace(*opener.calls, *routing_.tools, bytes_, next_index_);
    mode_ = Mode::kSegment;
    opening_ = opener.is_part_of_call ? std::string() : marker;
    if (opener.is_part_of_call) {
      for (const char c : marker) {
        segment(c);
      }
    }
  }

  void thought(char c) {
    held_ += c;
    while (!held_.empty() && !close_.starts_with(held_)) {
      const char first = held_.front();
      held_.erase(0, 1);
      if (in_name_) {
        in_name_ = first != '\n';
      } else if (!SpecialBytes::is_special(first)) {
        out_.reasoning += first;
      }
    }
    if (held_ == close_) {
      held_.clear();
      mode_ = Mode::kContent;
    }
  }

  void segment(char c) {
    switch (segment_->push(c, out_.calls)) {
      case CallSegment::Step::kMore:
        break;
      case CallSegment::Step::kClosed:
        close_segment();
        break;
      case CallSegment::Step::kFailed:
        release_segment();
        held_ += c;
        content();
        break;
    }
  }

  void leave_segment() {
    calls_ += segment_->calls();
    next_index_ = segment_->next_index();
    segment_.reset();
    mode_ = Mode::kContent;
    space_.clear();
  }

  void close_segment() {
    leave_segment();
    after_call_ = true;
  }

  void release_segment() {
    if (segment_->calls() == 0) {
      out_.content += space_ + bytes_.spelled(opening_);
    }
    out_.content += bytes_.spelled(segment_->text());
    has_content_ = true;
    after_call_ = false;
    leave_segment();
  }

  const SpecialBytes bytes_;
  const OutputRouting routing_;
  std::vector<Opener> openers_;
  std::string close_; // of a thought
  bool named_thoughts_ = false; // their first line is the channel's name

  Mode mode_ = Mode::kContent;
  std::string held_; // what may be the beginning of a marker
  std::string space_; // what a call, or a first thought, would swallow
  bool has_content_ = false;
  bool after_call_ = false; // nothing but white space came since
  bool in_name_ = false; // of a thought
  std::string opening_; // the marker that opened the segment
  std::optional<CallSegment> segment_;
  size_t calls_ = 0; // whole, in segments that were left
  size_t next_index_ = 0;
  RoutedText out_;
};

} // namespace

std::unique_ptr<OutputRouter> make_output_router(
    const OutputMarkup& markup,
    OutputRouting routing) {
  if (markup.family == OutputFamily::kHarmony) {
    return make_harmony_router(markup, std::move(routing));
  }
  return std::make_unique<MarkupRouter>(markup, std::move(routing));
}

bool ends_in_open_thought(std::string_view prompt, const OutputMarkup& markup) {
  return markup.thought && markup.family != OutputFamily::kHarmony &&
      trimmed(prompt).ends_with(trimmed(markup.thought->open));
}

} // namespace ingle
