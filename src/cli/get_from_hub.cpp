#include "cli/get_from_hub.h"

#include <cstdio>

#include "cli/console.h"
#include "cli/hub_session.h"
#include "cli/json_output.h"
#include "cli/progress_bar.h"
#include "cli/stop_signals.h"
#include "cli/version.h"
#include "hub/curl_client.h"
#include "hub/hub_cache.h"

namespace ingle {
namespace {

// Says, where the network fails, that there is a copy that needs none.
Status with_copy(
    const Environment& env,
    const HubModel& model,
    const Status& failure) {
  const bool is_network = failure.code() == StatusCode::kIo ||
      failure.code() == StatusCode::kTimeout ||
      failure.code() == StatusCode::kOverloaded;
  const auto repo = read_repo(env.fs, env.hub.cache, model.repo);
  if (!is_network || !repo.is_ok() || !repo->snapshot_of(model.revision)) {
    return failure;
  }
  return {
      failure.code(),
      failure.message() + "; the copy that is there already can be used: " +
          "--model " + model.to_string()};
}

void print_report(
    const DownloadPlan& plan,
    const DownloadReport& report,
    bool json) {
  if (json) {
    print_json(
        {{"name", plan.model.repo},
         {"revision", plan.model.revision},
         {"commit", plan.commit},
         {"folder", report.folder},
         {"files", plan.files.size()},
         {"bytes", plan.bytes()},
         {"fetched_bytes", report.fetched_bytes}});
  } else {
    print_line(
        plan.model.to_string() +
        (report.fetched_bytes == 0 ? " is there already: " : " is ready: ") +
        report.folder);
  }
}

} // namespace

Status
get_from_hub(const Environment& env, const std::string& argument, bool json) {
  INGLE_ASSIGN_OR_RETURN(const HubModel model, parse_hub_model(argument));
  INGLE_ASSIGN_OR_RETURN(std::string token, hub_token(env));
  INGLE_ASSIGN_OR_RETURN(
      const auto client, make_curl_client(std::string("ingle/") + kVersion));
  std::stop_source stop;
  const StopSignals signals([&] { stop.request_stop(); });
  Hub hub(
      *client,
      {env.hub.endpoint,
       std::move(token),
       [&](std::chrono::seconds time, const std::string& why) {
         return wait_for_hub(time, why, stop.get_token());
       },
       stop.get_token()});
  ProgressBar asking("asking for the files", env.clock);
  const auto plan = plan_download(hub, model, asking.callback());
  asking.finish();
  if (!plan.is_ok()) {
    return with_copy(env, model, plan.status());
  }
  const Processes processes = this_process();
  const DownloadPlace place{env.fs, env.clock, processes, env.hub.cache};
  ProgressBar bar(
      "downloading " + human_bytes(static_cast<double>(plan->bytes())),
      env.clock);
  INGLE_ASSIGN_OR_RETURN(
      const auto report, download(place, hub, *plan, bar.callback()));
  bar.finish();
  print_report(*plan, report, json);
  return Status::ok();
}

} // namespace ingle
