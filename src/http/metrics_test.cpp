// GET /metrics and GET /stats.
#include "http/metrics.h"

#include "http/testing/server_fixture.h"

namespace ingle {
namespace {

EngineStats busy() {
  EngineStats stats;
  stats.max_rows = 8;
  stats.queue_limit = 256;
  stats.queued = 3;
  stats.prefilling = 1;
  stats.decoding = 5;
  stats.steps = 70;
  stats.prompt_tokens = 1234567890123;
  stats.cached_tokens = 400;
  stats.generated_tokens = 99;
  stats.finished = {11, 12, 15, 13, 14};
  stats.refused = {{"context_length_exceeded", 2}, {"queue_full", 21}};
  stats.prompt_cache = {4, 5000, 6000, 700, 81, 92, 103};
  stats.kv_layers = {{"16", 28}, {"state", 2}};
  stats.queue_wait.observe(0.25);
  stats.queue_wait.observe(0.75);
  stats.between_tokens.observe(0.002);
  stats.between_tokens.observe(0.004);
  stats.between_tokens.observe(1000);
  return stats;
}

class MetricsTest : public ServerFixture {
 protected:
  MetricsTest() {
    start();
  }

  // What the line of this name and these labels says; empty: there is none.
  std::string metric(const std::string& name) {
    const std::string text = ask(get("/metrics")).body;
    const std::string key = "\n" + name + " ";
    const size_t at = text.find(key);
    if (at == std::string::npos) {
      return {};
    }
    const size_t begin = at + key.size();
    return text.substr(begin, text.find('\n', begin) - begin);
  }
};

TEST_F(MetricsTest, IsPrometheusText) {
  const TestResponse response = ask(get("/metrics"));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(
      response.headers.at("content-type"),
      "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_NE(
      response.body.find(
          "# HELP ingle_requests_queued Generations of whose prompt nothing is "
          "read yet\n# TYPE ingle_requests_queued gauge\n"),
      std::string::npos);
}

TEST_F(MetricsTest, SaysWhatTheEngineCounts) {
  generator_.set_stats(busy());
  EXPECT_EQ(metric("ingle_requests_queued"), "3");
  EXPECT_EQ(metric("ingle_requests_prefilling"), "1");
  EXPECT_EQ(metric("ingle_requests_decoding"), "5");
  EXPECT_EQ(metric("ingle_rows_max"), "8");
  EXPECT_EQ(metric("ingle_steps_total"), "70");
  EXPECT_EQ(metric("ingle_prompt_cache_entries"), "4");
  EXPECT_EQ(metric("ingle_prompt_cache_bytes"), "5000");
  EXPECT_EQ(metric("ingle_prompt_cache_max_bytes"), "6000");
  EXPECT_EQ(metric("ingle_prompt_cache_hits_total"), "81");
  EXPECT_EQ(metric("ingle_prompt_cache_misses_total"), "92");
  EXPECT_EQ(metric("ingle_prompt_cache_evicted_total"), "103");
  EXPECT_EQ(metric("ingle_prompt_tokens_total"), "1234567890123");
  EXPECT_EQ(metric("ingle_cached_tokens_total"), "400");
  EXPECT_EQ(metric("ingle_generated_tokens_total"), "99");
  const std::string finished = "ingle_requests_finished_total";
  EXPECT_EQ(metric(finished + R"({reason="stop"})"), "11");
  EXPECT_EQ(metric(finished + R"({reason="length"})"), "12");
  EXPECT_EQ(metric(finished + R"({reason="tool_calls"})"), "15");
  EXPECT_EQ(metric(finished + R"({reason="cancelled"})"), "13");
  EXPECT_EQ(metric(finished + R"({reason="error"})"), "14");
  const std::string refused = "ingle_requests_refused_total";
  EXPECT_EQ(metric(refused + R"({code="queue_full"})"), "21");
  EXPECT_EQ(metric(refused + R"({code="context_length_exceeded"})"), "2");
}

TEST_F(MetricsTest, BucketsOfTimesHoldThoseBelowThem) {
  generator_.set_stats(busy());
  const std::string waited = "ingle_queue_wait_seconds";
  EXPECT_EQ(metric(waited + R"(_bucket{le="0.1"})"), "0");
  EXPECT_EQ(metric(waited + R"(_bucket{le="0.25"})"), "1");
  EXPECT_EQ(metric(waited + R"(_bucket{le="0.5"})"), "1");
  EXPECT_EQ(metric(waited + R"(_bucket{le="1"})"), "2");
  EXPECT_EQ(metric(waited + R"(_bucket{le="+Inf"})"), "2");
  EXPECT_EQ(metric(waited + "_count"), "2");
  EXPECT_EQ(metric(waited + "_sum"), "1");
  const std::string gap = "ingle_inter_token_seconds";
  EXPECT_EQ(metric(gap + R"(_bucket{le="2.5"})"), "2");
  EXPECT_EQ(metric(gap + R"(_bucket{le="+Inf"})"), "3");
}

TEST_F(MetricsTest, ResponsesCountByStatus) {
  const std::string responses = "ingle_http_responses_total";
  EXPECT_EQ(metric(responses + R"({status="404"})"), "");
  // On one connection: what comes later sees all that was answered before.
  TestClient client(port());
  for (const std::string& request :
       {get("/nowhere"),
        get("/nowhere"),
        post("/v1/chat/completions", "{"),
        post("/v1/chat/completions", chat_body()),
        post("/v1/chat/completions", chat_body(R"(,"stream":true)"))}) {
    client.send(request);
    EXPECT_NE(client.read_response().status, 0);
  }
  client.send(get("/metrics"));
  const std::string text = client.read_response().body;
  for (const char* line :
       {R"({status="404"} 2)", R"({status="400"} 1)", R"({status="200"} 3)"}) {
    EXPECT_NE(text.find(responses + line + "\n"), std::string::npos) << text;
  }
}

TEST_F(MetricsTest, StatsAreJson) {
  generator_.set_stats(busy());
  const TestResponse response = ask(get("/stats"));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.headers.at("content-type"), "application/json");
  EXPECT_EQ(
      response.body,
      R"({"server":{"owner":"ingle","version":"1.2.3","model":"tiny",)"
      R"("started_at":1700000000},)"
      R"("prompt_cache":{"entries":4,"bytes":5000,"max_bytes":6000,)"
      R"("checkpoint_bytes":700,"hits":81,"misses":92,"evicted":103},)"
      R"("kv_quant":{"layers":{"16":28,"state":2}},)"
      R"("admission":{"max_safe_context":4096,"usable_bytes":null,)"
      R"("weights_bytes":0,"queue_limit":256},)"
      R"("batch":{"configured":8,"batched":true,"active_rows":6,)"
      R"("prefilling_rows":1,"decoding_rows":5,"queued":3,"steps":70},)"
      R"("tokens":{"prompt":1234567890123,"cached":400,"generated":99},)"
      R"("requests":{"finished":{"stop":11,"length":12,"tool_calls":15,)"
      R"("cancelled":13,"error":14},"refused":{"context_length_exceeded":2,)"
      R"("queue_full":21}},)"
      R"("times":{"queue_wait":{"count":2,"mean_ms":500.0},)"
      R"("first_token":{"count":0,"mean_ms":null},)"
      R"("inter_token":{"count":3,"mean_ms":333335.3333333333},)"
      R"("request":{"count":0,"mean_ms":null}}})");
}

TEST_F(MetricsTest, BothAnswerWhileTheModelLoads) {
  generator_.set_model(nullptr);
  EXPECT_EQ(ask(get("/metrics")).status, 200);
  const TestResponse response = ask(get("/stats"));
  EXPECT_EQ(response.status, 200);
  EXPECT_NE(response.body.find(R"("model":null)"), std::string::npos);
}

} // namespace
} // namespace ingle
