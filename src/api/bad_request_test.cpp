// Every complaint names the field by its JSON path, and says what would do.
#include <gtest/gtest.h>

#include "api/answer.h"
#include "api/error_body.h"
#include "api/testing/fake_served_model.h"
#include "api/text_request.h"

namespace ingle {
namespace {

enum Endpoint { kChat, kCompletion, kTokenize, kDetokenize, kApplyTemplate };

struct BadBody {
  Endpoint endpoint;
  std::string body;
  std::string where; // empty: the whole body
  std::string what;
};

std::string with_user_message(const std::string& fields) {
  return R"({"messages":[{"role":"user","content":"hi"}])" + fields + "}";
}

Status answer(Endpoint endpoint, const std::string& body) {
  const ServedModel model = make_fake_model();
  switch (endpoint) {
    case kChat:
      return prepare_chat(body, model, {}).status();
    case kCompletion:
      return prepare_completion(body, model, {}).status();
    case kTokenize:
      return tokenize(body, model).status();
    case kDetokenize:
      return detokenize(body, model).status();
    case kApplyTemplate:
      return apply_template(body, model).status();
  }
  return {};
}

class BadRequest : public testing::TestWithParam<BadBody> {};

TEST_P(BadRequest, NamesThePlaceAndTheFix) {
  const BadBody& bad = GetParam();
  const Status refused = answer(bad.endpoint, bad.body);
  EXPECT_EQ(http_status(refused), 400);
  EXPECT_EQ(refused.where(), bad.where);
  EXPECT_EQ(
      refused.message(),
      bad.where.empty() ? bad.what : bad.where + ": " + bad.what);
}

INSTANTIATE_TEST_SUITE_P(
    Bodies,
    BadRequest,
    testing::ValuesIn(std::vector<BadBody>{
        BadBody{
            kChat,
            R"()",
            "",
            "the body: expected one JSON value in UTF-8, got a syntax error at byte 1"},
        BadBody{
            kChat,
            R"({"messages":)",
            "",
            "the body: expected one JSON value in UTF-8, got a syntax error at byte 13"},
        BadBody{
            kChat,
            R"({"a":1,"a":2})",
            "",
            "the body: expected one JSON value in UTF-8, got the key \"a\" twice in one object"},
        BadBody{
            kChat,
            R"([])",
            "",
            "the body: expected an object, got an array"},
        BadBody{
            kChat,
            R"({})",
            "messages",
            "expected an array of messages, got nothing"},
        BadBody{
            kChat,
            R"({"messages":[]})",
            "messages",
            "expected at least one message, got an empty array"},
        BadBody{
            kChat,
            R"({"messages":"hi"})",
            "messages",
            "expected an array, got a string"},
        BadBody{
            kChat,
            R"({"messages":["hi"]})",
            "messages[0]",
            "expected an object, got a string"},
        BadBody{
            kChat,
            R"({"messages":[{"role":"robot","content":"x"}]})",
            "messages[0].role",
            "expected \"system\", \"developer\", \"user\", \"assistant\" or \"tool\""},
        BadBody{
            kChat,
            R"({"messages":[{"role":"function","content":"x"}]})",
            "messages[0].role",
            "expected \"system\", \"developer\", \"user\", \"assistant\" or \"tool\""},
        BadBody{
            kChat,
            R"({"messages":[{"content":"x"}]})",
            "messages[0].role",
            "expected \"system\", \"developer\", \"user\", \"assistant\" or \"tool\""},
        BadBody{
            kChat,
            R"({"messages":[{"role":"user"}]})",
            "messages[0].content",
            "expected a string or an array of text parts, got nothing"},
        BadBody{
            kChat,
            R"({"messages":[{"role":"user","content":null}]})",
            "messages[0].content",
            "expected a string or an array of text parts, got null"},
        BadBody{
            kChat,
            R"({"messages":[{"role":"user","content":3}]})",
            "messages[0].content",
            "expected a string or an array of text parts, got a number"},
        BadBody{
            kChat,
            R"({"messages":[{"role":"user","content":[{"type":"image_url"}]}]})",
            "messages[0].content[0].type",
            "expected \"text\": parts of other types are not supported"},
        BadBody{
            kChat,
            R"({"messages":[{"role":"user","content":[{"type":"text"}]}]})",
            "messages[0].content[0].text",
            "expected a string, got nothing"},
        BadBody{
            kChat,
            R"({"messages":[{"role":"assistant","content":"","tool_calls":3}]})",
            "messages[0].tool_calls",
            "expected an array, got a number"},
        BadBody{
            kChat,
            R"({"messages":[{"role":"assistant","content":"","tool_calls":[{"function":{"name":1}}]}]})",
            "messages[0].tool_calls[0].function.name",
            "expected a string, got a number"},
        BadBody{
            kChat,
            R"({"messages":[{"role":"assistant","content":"","tool_calls":[{}]}]})",
            "messages[0].tool_calls[0].function",
            "expected an object, got nothing"},
        BadBody{
            kChat,
            with_user_message(R"(,"temperature":"hot")"),
            "temperature",
            "expected a number from 0 to 2, got a string"},
        BadBody{
            kChat,
            with_user_message(R"(,"temperature":2.5)"),
            "temperature",
            "expected a number from 0 to 2, got 2.5"},
        BadBody{
            kChat,
            with_user_message(R"(,"top_p":-0.5)"),
            "top_p",
            "expected a number from 0 to 1, got -0.5"},
        BadBody{
            kChat,
            with_user_message(R"(,"min_p":"low")"),
            "min_p",
            "expected a number from 0 to 1, got a string"},
        BadBody{
            kChat,
            with_user_message(R"(,"min_p":1.5)"),
            "min_p",
            "expected a number from 0 to 1, got 1.5"},
        BadBody{
            kChat,
            with_user_message(R"(,"xtc_probability":2)"),
            "xtc_probability",
            "expected a number from 0 to 1, got 2"},
        BadBody{
            kChat,
            with_user_message(R"(,"xtc_threshold":0.75)"),
            "xtc_threshold",
            "expected a number from 0 to 0.5, got 0.75"},
        BadBody{
            kChat,
            with_user_message(R"(,"repetition_penalty":-1)"),
            "repetition_penalty",
            "expected a number from 0 to 100, got -1"},
        BadBody{
            kChat,
            with_user_message(R"(,"repetition_context_size":-1)"),
            "repetition_context_size",
            "expected an integer from 0 to 2147483647, got -1"},
        BadBody{
            kChat,
            with_user_message(R"(,"presence_penalty":3)"),
            "presence_penalty",
            "expected a number from -2 to 2, got 3"},
        BadBody{
            kChat,
            with_user_message(R"(,"frequency_penalty":-3)"),
            "frequency_penalty",
            "expected a number from -2 to 2, got -3"},
        BadBody{
            kChat,
            with_user_message(R"(,"top_k":-2)"),
            "top_k",
            "expected an integer from 0 to 2147483647, got -2"},
        BadBody{
            kChat,
            with_user_message(R"(,"max_tokens":0)"),
            "max_tokens",
            "expected an integer from 1 to 2147483647, got 0"},
        BadBody{
            kChat,
            with_user_message(R"(,"max_completion_tokens":1.5)"),
            "max_completion_tokens",
            "expected an integer from 1 to 2147483647, got 1.5"},
        BadBody{
            kChat,
            with_user_message(R"(,"max_tokens":9999)"),
            "max_tokens",
            "the prompt has 6 tokens and max_tokens is 9999, together 10005, more than the model's context of 4096 tokens: shorten the prompt or lower max_tokens"},
        BadBody{
            kChat,
            with_user_message(R"(,"min_tokens":9999)"),
            "min_tokens",
            "the prompt has 6 tokens and min_tokens is 9999, together 10005, more than the model's context of 4096 tokens: shorten the prompt or lower min_tokens"},
        BadBody{
            kChat,
            with_user_message(R"(,"min_tokens":5,"max_tokens":4)"),
            "min_tokens",
            "expected at most max_tokens (4), got 5"},
        BadBody{
            kChat,
            with_user_message(R"(,"seed":"7")"),
            "seed",
            "expected an integer from -9223372036854775808 to 9223372036854775807, "
            "got a string"},
        BadBody{
            kChat,
            with_user_message(R"(,"n":0)"),
            "n",
            "expected an integer from 1 to 128, got 0"},
        BadBody{
            kChat,
            with_user_message(R"(,"n":129)"),
            "n",
            "expected an integer from 1 to 128, got 129"},
        BadBody{
            kChat,
            with_user_message(R"(,"stream":"yes")"),
            "stream",
            "expected a boolean, got a string"},
        BadBody{
            kChat,
            with_user_message(R"(,"stream_options":true)"),
            "stream_options",
            "expected an object, got a boolean"},
        BadBody{
            kChat,
            with_user_message(R"(,"stream_options":{"include_usage":1})"),
            "stream_options.include_usage",
            "expected a boolean, got a number"},
        BadBody{
            kChat,
            with_user_message(R"(,"return_progress":1)"),
            "return_progress",
            "expected a boolean, got a number"},
        BadBody{
            kChat,
            with_user_message(R"(,"cache":"no")"),
            "cache",
            "expected a boolean, got a string"},
        BadBody{
            kChat,
            with_user_message(R"(,"ignore_eos":0)"),
            "ignore_eos",
            "expected a boolean, got a number"},
        BadBody{
            kChat,
            with_user_message(R"(,"stop":["a",1])"),
            "stop[1]",
            "expected a string, got a number"},
        BadBody{
            kChat,
            with_user_message(R"(,"stop":5)"),
            "stop",
            "expected a string or an array of strings, got a number"},
        BadBody{
            kChat,
            with_user_message(
                R"(,"stop":["","","","","","","","","","","","","","","","",""])"),
            "stop",
            "expected at most 16 strings, got 17"},
        BadBody{
            kChat,
            with_user_message(R"(,"logprobs":1)"),
            "logprobs",
            "expected a boolean, got a number"},
        BadBody{
            kChat,
            with_user_message(R"(,"top_logprobs":21)"),
            "top_logprobs",
            "expected an integer from 0 to 20, got 21"},
        BadBody{
            kChat,
            with_user_message(R"(,"top_logprobs":"5")"),
            "top_logprobs",
            "expected an integer from 0 to 20, got a string"},
        BadBody{
            kChat,
            with_user_message(R"(,"logprobs":false,"top_logprobs":2)"),
            "logprobs",
            "expected true where top_logprobs is given, got false"},
        BadBody{
            kChat,
            with_user_message(R"(,"logit_bias":[])"),
            "logit_bias",
            "expected an object of token ids to numbers, got an array"},
        BadBody{
            kChat,
            with_user_message(R"(,"logit_bias":{"the":1})"),
            "logit_bias",
            "expected keys that are token ids, like \"42\", got \"the\""},
        BadBody{
            kChat,
            with_user_message(R"(,"logit_bias":{"07":1})"),
            "logit_bias",
            "expected keys that are token ids, like \"42\", got \"07\""},
        BadBody{
            kChat,
            with_user_message(R"(,"logit_bias":{"-1":1})"),
            "logit_bias",
            "expected keys that are token ids, like \"42\", got \"-1\""},
        BadBody{
            kChat,
            with_user_message(R"(,"logit_bias":{"42":"x"})"),
            "logit_bias.42",
            "expected a number from -100 to 100, got a string"},
        BadBody{
            kChat,
            with_user_message(R"(,"logit_bias":{"42":null})"),
            "logit_bias.42",
            "expected a number from -100 to 100, got null"},
        BadBody{
            kChat,
            with_user_message(R"(,"logit_bias":{"42":101})"),
            "logit_bias.42",
            "expected a number from -100 to 100, got 101"},
        BadBody{
            kChat,
            with_user_message(R"(,"logit_bias":{"258":1})"),
            "logit_bias.258",
            "expected token ids below 258, the size of the model's vocabulary"},
        BadBody{
            kChat,
            with_user_message(R"(,"response_format":{"type":"xml"})"),
            "response_format.type",
            "expected \"text\", \"json_object\" or \"json_schema\""},
        BadBody{
            kChat,
            with_user_message(R"(,"response_format":{"type":"json_schema"})"),
            "response_format.json_schema",
            "expected an object with a schema, got nothing"},
        BadBody{
            kChat,
            with_user_message(R"(,"response_format":{"type":"json_schema",)"
                              R"("json_schema":{"schema":[]}})"),
            "response_format.json_schema.schema",
            "expected an object, got an array"},
        BadBody{
            kChat,
            with_user_message(R"(,"guided_json":"{")"),
            "guided_json",
            "expected a string that is a JSON object"},
        BadBody{
            kChat,
            with_user_message(R"(,"guided_regex":["a"])"),
            "guided_regex",
            "expected a string, got an array"},
        BadBody{
            kChat,
            with_user_message(R"(,"guided_choice":["a",1])"),
            "guided_choice[1]",
            "expected a string, got a number"},
        BadBody{
            kChat,
            with_user_message(R"(,"guided_choice":[])"),
            "guided_choice",
            "expected at least one string, got none"},
        BadBody{
            kChat,
            with_user_message(
                R"(,"guided_regex":"a","grammar":"start: \"a\"")"),
            "grammar",
            "expected one format of the answer, got guided_regex too"},
        BadBody{
            kChat,
            with_user_message(R"(,"tools":{})"),
            "tools",
            "expected an array, got an object"},
        BadBody{
            kChat,
            with_user_message(R"(,"tools":["f"])"),
            "tools[0]",
            "expected an object, got a string"},
        BadBody{
            kChat,
            with_user_message(R"(,"tools":[{"type":"web_search"}])"),
            "tools[0].type",
            "expected \"function\": tools of other types are not supported"},
        BadBody{
            kChat,
            with_user_message(R"(,"tools":[{"type":"function"}])"),
            "tools[0].function",
            "expected an object, got nothing"},
        BadBody{
            kChat,
            with_user_message(
                R"(,"tools":[{"type":"function","function":{}}])"),
            "tools[0].function.name",
            "expected a string, got nothing"},
        BadBody{
            kChat,
            with_user_message(R"(,"tool_choice":"sometimes")"),
            "tool_choice",
            "expected \"none\", \"auto\", \"required\" or an object that names a tool"},
        BadBody{
            kChat,
            with_user_message(R"(,"tool_choice":{})"),
            "tool_choice.type",
            "expected \"function\""},
        BadBody{
            kChat,
            with_user_message(
                R"(,"tool_choice":{"type":"function","function":{}})"),
            "tool_choice.function.name",
            "expected the name of a tool, got nothing"},
        BadBody{
            kChat,
            with_user_message(R"(,"tool_choice":"required")"),
            "tool_choice",
            "expected tools, of which there is none"},
        BadBody{
            kChat,
            with_user_message(R"(,"chat_template_kwargs":[])"),
            "chat_template_kwargs",
            "expected an object, got an array"},
        BadBody{
            kChat,
            with_user_message(
                R"(,"chat_template_kwargs":{"add_generation_prompt":false})"),
            "chat_template_kwargs.add_generation_prompt",
            "expected variables of the template's own, and this one is not a "
            "request's to set: leave it out"},
        BadBody{
            kChat,
            with_user_message(R"(,"model":3)"),
            "model",
            "expected a string, got a number"},
        BadBody{
            kChat,
            with_user_message(R"(,"repetition_penalty":0.001)"),
            "repetition_penalty",
            "expected 0 (off), or a number from 0.01 to 100"},
        BadBody{
            kChat,
            with_user_message(",\"stop\":\"" + std::string(1025, 'x') + "\""),
            "stop",
            "expected at most 1024 bytes, got 1025"},
        BadBody{
            kChat,
            with_user_message(R"(,"adapter":"a")"),
            "adapter",
            "the model tiny takes no adapters"},
        BadBody{
            kChat,
            with_user_message(R"(,"functions":[])"),
            "functions",
            "what \"tools\" has replaced is not supported yet: leave it out"},
        BadBody{
            kChat,
            with_user_message(R"(,"modalities":["text","audio"])"),
            "modalities",
            "a value other than [\"text\"] is not supported yet: leave it out"},
        BadBody{
            kChat,
            with_user_message(R"(,"reasoning_effort":3)"),
            "reasoning_effort",
            "expected a string, got a number"},
        BadBody{
            kChat,
            with_user_message(R"(,"user":3)"),
            "user",
            "expected a string, got a number"},
        BadBody{
            kCompletion,
            R"({})",
            "prompt",
            "expected a string, an array of token ids, or an array of these, got nothing"},
        BadBody{
            kCompletion,
            R"({"prompt":3})",
            "prompt",
            "expected a string, an array of token ids, or an array of these, got a number"},
        BadBody{
            kCompletion,
            R"({"prompt":""})",
            "prompt",
            "expected a string that is not empty"},
        BadBody{
            kCompletion,
            R"({"prompt":[]})",
            "prompt",
            "expected an array that is not empty"},
        BadBody{
            kCompletion,
            R"({"prompt":[1,-2]})",
            "prompt[1]",
            "expected a token id (an integer from 0 to 2147483647), got -2"},
        BadBody{
            kCompletion,
            R"({"prompt":[1,"a"]})",
            "prompt[1]",
            "expected a token id (an integer from 0 to 2147483647), got a string"},
        BadBody{
            kCompletion,
            R"({"prompt":["a",""]})",
            "prompt[1]",
            "expected a string that is not empty"},
        BadBody{
            kCompletion,
            R"({"prompt":["a",3]})",
            "prompt[1]",
            "expected a string or an array of token ids, got a number"},
        BadBody{
            kCompletion,
            R"({"prompt":[[1],[]]})",
            "prompt[1]",
            "expected an array that is not empty"},
        BadBody{
            kCompletion,
            R"({"prompt":[[1],[1,999]]})",
            "prompt[1][1]",
            "expected a token id below 258, the size of the model's vocabulary, got 999"},
        BadBody{
            kCompletion,
            R"({"prompt":"x","logprobs":true})",
            "logprobs",
            "expected an integer from 0 to 20, got a boolean"},
        BadBody{
            kCompletion,
            R"({"prompt":"x","logprobs":21})",
            "logprobs",
            "expected an integer from 0 to 20, got 21"},
        BadBody{
            kCompletion,
            R"({"prompt":"x","echo":"yes"})",
            "echo",
            "expected a boolean, got a string"},
        BadBody{
            kCompletion,
            R"({"prompt":"x","best_of":2})",
            "best_of",
            "a value other than n is not supported yet: leave it out"},
        BadBody{
            kCompletion,
            R"({"prompt":"x","suffix":"y"})",
            "suffix",
            "a suffix is not supported yet: leave it out"},
        BadBody{
            kCompletion,
            R"({"prompt":"x","max_tokens":-2})",
            "max_tokens",
            "expected an integer from 0 to 2147483647, got -2"},
        BadBody{
            kTokenize,
            R"({})",
            "content",
            "expected a string, got nothing"},
        BadBody{
            kTokenize,
            R"({"content":[]})",
            "content",
            "expected a string, got an array"},
        BadBody{
            kTokenize,
            R"({"content":"a","add_special":1})",
            "add_special",
            "expected a boolean, got a number"},
        BadBody{
            kTokenize,
            R"({"content":"a","with_pieces":1})",
            "with_pieces",
            "expected a boolean, got a number"},
        BadBody{
            kTokenize,
            R"({"content":"a","parse_special":false})",
            "parse_special",
            "a value other than true is not supported yet: leave it out"},
        BadBody{
            kDetokenize,
            R"({})",
            "tokens",
            "expected an array of token ids, got nothing"},
        BadBody{
            kDetokenize,
            R"({"tokens":"a"})",
            "tokens",
            "expected an array of token ids, got a string"},
        BadBody{
            kDetokenize,
            R"({"tokens":[1,258]})",
            "tokens[1]",
            "expected a token id below 258, the size of the model's vocabulary, got 258"},
        BadBody{
            kApplyTemplate,
            R"({})",
            "messages",
            "expected an array of messages, got nothing"}}));

} // namespace
} // namespace ingle
