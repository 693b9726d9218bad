// The C boundary of the Rust crate: tokenizers, chat templates and grammars.
//
// Strings are a pointer and a length, never terminated; what is passed in is
// borrowed for the call and checked to be UTF-8. Nothing unwinds out of here:
// a panic is kIngleTextPanicked or kIngleTextBroken. Handles may be used by any
// number of threads at once, but for a grammar's matcher, which is one thread's
// at a time; freeing one needs it alone. A null handle or buffer frees to
// nothing.
//
// src/lib.rs has the other half of these declarations.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct IngleTokenizer IngleTokenizer;
typedef struct IngleTemplate IngleTemplate;
typedef struct IngleGrammarFactory IngleGrammarFactory;
typedef struct IngleGrammar IngleGrammar;
typedef struct IngleGrammarMatcher IngleGrammarMatcher;

typedef enum {
  kIngleTextOk = 0,
  kIngleTextFailed = 1, // the input can't be used; the text says why
  kIngleTextRaised = 2, // raise_exception(): the text is the template's own
  kIngleTextPanicked = 3, // a bug in the crate
  kIngleTextAbsent = 4, // no such token
  // A library panicked: how some refuse a file that is broken in a way that
  // they don't check, when it is loaded or used.
  kIngleTextBroken = 5,
} IngleTextCode;

// Bytes that the crate allocated: a result, or the message of a failure in one
// line. Every function with such a parameter sets it whatever it returns, and
// the caller frees it.
typedef struct {
  char* data;
  size_t size;
} IngleTextBuffer;

typedef struct {
  int32_t* data;
  size_t size;
} IngleTextIds;

void ingle_text_buffer_free(IngleTextBuffer buffer);
void ingle_text_ids_free(IngleTextIds ids);

// `json` is the content of a tokenizer.json. Its padding and truncation are
// ignored. `*out` is null unless kIngleTextOk.
IngleTextCode ingle_tokenizer_create(
    const char* json,
    size_t json_size,
    IngleTokenizer** out,
    IngleTextBuffer* error);
void ingle_tokenizer_free(IngleTokenizer* tokenizer);

IngleTextCode ingle_tokenizer_encode(
    const IngleTokenizer* tokenizer,
    const char* text,
    size_t text_size,
    int add_special_tokens,
    IngleTextIds* out,
    IngleTextBuffer* error);
IngleTextCode ingle_tokenizer_decode(
    const IngleTokenizer* tokenizer,
    const int32_t* ids,
    size_t ids_size,
    int skip_special_tokens,
    IngleTextBuffer* out);
IngleTextCode ingle_tokenizer_id_to_token(
    const IngleTokenizer* tokenizer,
    int32_t id,
    IngleTextBuffer* out);
// The bytes that the token stands for within a text; not UTF-8 where it is a
// part of a character.
IngleTextCode ingle_tokenizer_token_bytes(
    const IngleTokenizer* tokenizer,
    int32_t id,
    IngleTextBuffer* out);
IngleTextCode ingle_tokenizer_token_to_id(
    const IngleTokenizer* tokenizer,
    const char* token,
    size_t token_size,
    int32_t* out);
// The largest id plus one, added tokens included.
int32_t ingle_tokenizer_vocab_size(const IngleTokenizer* tokenizer);

// `*out` is null unless kIngleTextOk.
IngleTextCode ingle_template_create(
    const char* source,
    size_t source_size,
    IngleTemplate** out,
    IngleTextBuffer* error);
void ingle_template_free(IngleTemplate* handle);

// `context` is a JSON object. `now` (seconds since the epoch) is what
// strftime_now() shows, in the local time zone.
IngleTextCode ingle_template_render(
    const IngleTemplate* handle,
    const char* context,
    size_t context_size,
    int64_t now,
    IngleTextBuffer* out);

// What all grammars of a tokenizer share, for a model of `vocab_size` tokens
// that ends with one of `eos`; ids from `vocab_size` on are left out. `*out` is
// null unless kIngleTextOk, as below.
IngleTextCode ingle_grammar_factory_create(
    const IngleTokenizer* tokenizer,
    const int32_t* eos,
    size_t eos_size,
    size_t vocab_size,
    IngleGrammarFactory** out,
    IngleTextBuffer* error);
void ingle_grammar_factory_free(IngleGrammarFactory* factory);

typedef enum {
  kIngleGrammarJsonSchema = 0,
  kIngleGrammarRegex = 1,
  kIngleGrammarLark = 2,
  kIngleGrammarChoice = 3, // a JSON array of strings
  kIngleGrammarLenientJsonSchema = 4, // what can't be followed is left out
} IngleGrammarKind;

// `name` is what a Lark grammar refers to as @name.
typedef struct {
  const char* name;
  size_t name_size;
  IngleGrammarKind kind;
  const char* text;
  size_t text_size;
} IngleGrammarPart;

// Compiles the first of `parts`, and the others where it refers to them, on a
// thread of its own. kIngleTextFailed: why, for a schema after the path of its
// part at fault; `*at_fault` is the index of the part in `parts`.
IngleTextCode ingle_grammar_create(
    const IngleGrammarFactory* factory,
    const IngleGrammarPart* parts,
    size_t parts_size,
    IngleGrammar** out,
    size_t* at_fault,
    IngleTextBuffer* error);
void ingle_grammar_free(IngleGrammar* grammar);

// At the beginning of a text.
IngleTextCode ingle_grammar_matcher_create(
    const IngleGrammar* grammar,
    IngleGrammarMatcher** out,
    IngleTextBuffer* error);
void ingle_grammar_matcher_free(IngleGrammarMatcher* matcher);
// Writes `words` words: bit id % 32 of word id / 32 is set where the token may
// come next.
IngleTextCode ingle_grammar_matcher_mask(
    IngleGrammarMatcher* matcher,
    uint32_t* bits,
    size_t words,
    IngleTextBuffer* error);
// `*is_complete`: the text may end here. `*has_ended`: it can't go on.
IngleTextCode ingle_grammar_matcher_accept(
    IngleGrammarMatcher* matcher,
    int32_t id,
    int* is_complete,
    int* has_ended,
    IngleTextBuffer* error);

#ifdef __cplusplus
} // extern "C"
#endif
