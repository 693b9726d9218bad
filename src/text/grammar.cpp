#include "text/grammar.h"

#include <utility>

#include "text/boundary.h"

namespace ingle {
namespace {

IngleGrammarKind kind_of(GrammarSpec::Kind kind) {
  switch (kind) {
    case GrammarSpec::Kind::kJsonSchema:
      return kIngleGrammarJsonSchema;
    case GrammarSpec::Kind::kLenientJsonSchema:
      return kIngleGrammarLenientJsonSchema;
    case GrammarSpec::Kind::kRegex:
      return kIngleGrammarRegex;
    case GrammarSpec::Kind::kLark:
      return kIngleGrammarLark;
    case GrammarSpec::Kind::kChoice:
      return kIngleGrammarChoice;
  }
  return kIngleGrammarLark;
}

// What is wrong with a client's grammar is told in the library's words alone.
Status status_of_grammar(IngleTextCode code, const RustText& message) {
  if (code == kIngleTextFailed) {
    return Status::invalid_request(message.str());
  }
  return status_of(code, message, StatusCode::kInvalidRequest, "grammar");
}

IngleGrammarPart
part_of(std::string_view name, GrammarSpec::Kind kind, std::string_view text) {
  return {name.data(), name.size(), kind_of(kind), text.data(), text.size()};
}

} // namespace

GrammarSpec any_json_object() {
  return {GrammarSpec::Kind::kJsonSchema, R"({"type":"object"})"};
}

GrammarMatcher::~GrammarMatcher() {
  ingle_grammar_matcher_free(handle_);
}

Status GrammarMatcher::mask(std::span<uint32_t> bits) {
  RustText message;
  const IngleTextCode code = ingle_grammar_matcher_mask(
      handle_, bits.data(), bits.size(), message.out());
  return status_of_grammar(code, message);
}

Status GrammarMatcher::accept(TokenId token) {
  int is_complete = 0;
  int has_ended = 0;
  RustText message;
  const IngleTextCode code = ingle_grammar_matcher_accept(
      handle_, token, &is_complete, &has_ended, message.out());
  INGLE_RETURN_IF_ERROR(status_of_grammar(code, message));
  is_complete_ = is_complete != 0;
  has_ended_ = has_ended != 0;
  return Status::ok();
}

Grammar::~Grammar() {
  ingle_grammar_free(handle_);
}

Result<std::unique_ptr<GrammarMatcher>> Grammar::make_matcher() const {
  IngleGrammarMatcher* handle = nullptr;
  RustText message;
  const IngleTextCode code =
      ingle_grammar_matcher_create(handle_, &handle, message.out());
  INGLE_RETURN_IF_ERROR(status_of_grammar(code, message));
  return std::make_unique<GrammarMatcher>(handle);
}

GrammarCompiler::GrammarCompiler(
    std::shared_ptr<const Tokenizer> tokenizer,
    std::vector<TokenId> eos,
    int vocab_size)
    : tokenizer_(std::move(tokenizer)),
      eos_(std::move(eos)),
      vocab_size_(vocab_size) {}

GrammarCompiler::~GrammarCompiler() {
  ingle_grammar_factory_free(factory_);
}

Result<const IngleGrammarFactory*> GrammarCompiler::factory() const {
  if (tokenizer_->handle() == nullptr) {
    return Status::unsupported("grammars need a tokenizer.json");
  }
  const MutexLock lock(mutex_);
  if (factory_ == nullptr) {
    RustText message;
    const IngleTextCode code = ingle_grammar_factory_create(
        tokenizer_->handle(),
        eos_.data(),
        eos_.size(),
        static_cast<size_t>(vocab_size_),
        &factory_,
        message.out());
    INGLE_RETURN_IF_ERROR(status_of(
        code, message, StatusCode::kCorruption, "grammars of this tokenizer"));
  }
  return factory_;
}

Result<std::shared_ptr<const Grammar>> GrammarCompiler::compile(
    const GrammarSpec& spec) const {
  size_t size = spec.text.size();
  std::vector<IngleGrammarPart> parts = {part_of("", spec.kind, spec.text)};
  for (const GrammarSpec::Part& part : spec.parts) {
    size += part.text.size();
    parts.push_back(part_of(part.name, part.kind, part.text));
  }
  if (size > kMaxGrammarBytes) {
    return Status::invalid_request(
        "expected at most " + std::to_string(kMaxGrammarBytes) +
        " bytes, got " + std::to_string(size));
  }
  INGLE_ASSIGN_OR_RETURN(const IngleGrammarFactory* const shared, factory());
  IngleGrammar* handle = nullptr;
  size_t at_fault = 0;
  RustText message;
  const IngleTextCode code = ingle_grammar_create(
      shared, parts.data(), parts.size(), &handle, &at_fault, message.out());
  if (code == kIngleTextFailed && at_fault > 0) {
    return status_of_grammar(code, message)
        .with_where(spec.parts[at_fault - 1].name);
  }
  INGLE_RETURN_IF_ERROR(status_of_grammar(code, message));
  return std::shared_ptr<const Grammar>(std::make_shared<Grammar>(handle));
}

} // namespace ingle
