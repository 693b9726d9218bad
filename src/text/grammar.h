// Grammars that an answer has to follow: which tokens may come next.
//
// llguidance behind a C boundary (text/rust): an Earley parser over a lexer of
// regular expressions, which walks a trie of the vocabulary.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "base/token.h"
#include "text/tokenizer.h"

struct IngleGrammar;
struct IngleGrammarFactory;
struct IngleGrammarMatcher;

namespace ingle {

// Bytes of a GrammarSpec's texts together.
inline constexpr size_t kMaxGrammarBytes = size_t{256} * 1024;

struct GrammarSpec {
  enum class Kind {
    kJsonSchema, // draft 2020-12; the text is the schema
    kLenientJsonSchema, // what can't be followed of it is left out
    kRegex, // of the whole answer; as Rust's crate `regex` spells it
    kLark, // as llguidance spells it, beginning at `start`
    kChoice, // one of several texts: a JSON array of strings
  };
  struct Part {
    std::string name; // letters, digits and "_"; not "start"
    Kind kind = Kind::kJsonSchema;
    std::string text;
  };

  Kind kind = Kind::kJsonSchema;
  std::string text;
  std::vector<Part> parts = {}; // what a Lark grammar refers to as @name
};

// {"type":"object"}.
GrammarSpec any_json_object();

// Where one answer stands in its grammar.
//
// A step is bounded (the lexer's fuel, the parser's items), and so are the
// states of the lexer in all, to some 100 MB: a grammar that takes more fails
// its row alone. The worst of grammars take half a second for a step before.
//
// Threads: one at a time.
// Errors:  kInvalidRequest (a bound is exceeded; a token that the grammar does
//          not allow), kCorruption (the library failed). Every call after an
//          error gives one.
class GrammarMatcher {
 public:
  explicit GrammarMatcher(IngleGrammarMatcher* handle) : handle_(handle) {}
  ~GrammarMatcher();
  GrammarMatcher(const GrammarMatcher&) = delete;
  GrammarMatcher& operator=(const GrammarMatcher&) = delete;

  // Sets bit id % 32 of word id / 32 for each token that may come next, and
  // clears the others. An end of sequence may where the answer is complete.
  // Cost: microseconds; some tenths of a millisecond where a part of the
  // grammar
  //       is met for the first time.
  Status mask(std::span<uint32_t> bits);
  // A token was generated.
  Status accept(TokenId token);
  // True iff the answer may end here.
  bool is_complete() const {
    return is_complete_;
  }
  // True iff nothing but an end of sequence can follow.
  bool has_ended() const {
    return has_ended_;
  }

 private:
  IngleGrammarMatcher* handle_; // owned
  bool is_complete_ = false;
  bool has_ended_ = false;
};

// Compiled, for one model.
//
// Threads: any; const.
class Grammar {
 public:
  explicit Grammar(IngleGrammar* handle) : handle_(handle) {}
  ~Grammar();
  Grammar(const Grammar&) = delete;
  Grammar& operator=(const Grammar&) = delete;

  // At the beginning of an answer. It does not need the grammar any more.
  Result<std::unique_ptr<GrammarMatcher>> make_matcher() const;

 private:
  IngleGrammar* handle_; // owned
};

// Compiles grammars for one model.
//
// The trie of its vocabulary is made when it is first asked for: for 49,152
// tokens in 0.1 s, and of 5 MB. A model whose clients ask for no grammar does
// without.
//
// Threads: any.
class GrammarCompiler {
 public:
  // `eos`: the tokens that end an answer. `vocab_size`: how many tokens the
  // model knows.
  GrammarCompiler(
      std::shared_ptr<const Tokenizer> tokenizer,
      std::vector<TokenId> eos,
      int vocab_size);
  ~GrammarCompiler();
  GrammarCompiler(const GrammarCompiler&) = delete;
  GrammarCompiler& operator=(const GrammarCompiler&) = delete;

  // Errors: kInvalidRequest (the library's words; in a schema after the path of
  //         its part at fault; where() is the name of the spec's part, if it is
  //         one of these), kCorruption (the library failed, or can't use the
  //         tokenizer).
  // Cost:   milliseconds, in a fresh thread with a large stack.
  Result<std::shared_ptr<const Grammar>> compile(const GrammarSpec& spec) const;

 private:
  Result<const IngleGrammarFactory*> factory() const;

  const std::shared_ptr<const Tokenizer> tokenizer_;
  const std::vector<TokenId> eos_;
  const int vocab_size_;
  mutable Mutex mutex_;
  mutable IngleGrammarFactory* factory_ INGLE_GUARDED_BY(mutex_) = nullptr;
};

} // namespace ingle
