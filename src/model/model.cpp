#include "model/model.h"

#include <mlx/memory.h>
#include <mlx/transforms.h>

#include "model/run_mlx.h"

namespace ingle {
namespace {

// While it is there, what the kernels compute counts.
class TimedKernels {
 public:
  TimedKernels(CpuKernels* kernels, Stopwatch* stopwatch) : kernels_(kernels) {
    set(stopwatch);
  }
  ~TimedKernels() {
    set(nullptr);
  }
  TimedKernels(const TimedKernels&) = delete;
  TimedKernels& operator=(const TimedKernels&) = delete;

 private:
  void set(Stopwatch* stopwatch) {
    if (kernels_ != nullptr) {
      kernels_->set_stopwatch(stopwatch);
    }
  }

  CpuKernels* kernels_;
};

std::optional<mx::array> build_and_evaluate(
    const Model& model,
    std::span<const Row> rows,
    Stopwatch* evaluation) {
  const TimedKernels timed(model.kernels(), evaluation);
  std::optional<mx::array> logits = model.forward(rows);
  std::vector<mx::array> outputs;
  for (const Row& row : rows) {
    for (auto& array : row.kv->pending_arrays()) {
      outputs.push_back(std::move(array));
    }
  }
  if (logits) {
    outputs.push_back(*logits);
  }
  time_with(evaluation, [&] { mx::eval(std::move(outputs)); });
  return logits;
}

} // namespace

size_t Model::weight_bytes() const {
  return mx::get_active_memory() +
      (kernels() == nullptr ? 0 : kernels()->arena().used_bytes());
}

LogitPasses Model::logit_passes() const {
  CpuKernels* own = kernels();
  return own != nullptr ? LogitPasses(own->context().set, &own->pool())
                        : LogitPasses(kernel_set(supported_isas().back()));
}

size_t logits_count(const Row& row) {
  switch (row.logits) {
    case Logits::kNone:
      return 0;
    case Logits::kLast:
      return 1;
    case Logits::kAll:
      return row.tokens.size();
  }
  return 0;
}

Result<std::optional<mx::array>>
run_step(const Model& model, std::span<const Row> rows, Stopwatch* evaluation) {
  std::optional<ThreadPool::Step> awake;
  if (model.kernels() != nullptr) {
    awake.emplace(model.kernels()->pool());
  }
  auto logits = run_mlx(
      "forward", [&] { return build_and_evaluate(model, rows, evaluation); });
  Status status = logits.status();
  for (const Row& row : rows) {
    if (status.is_ok()) {
      status = row.kv->commit();
    }
  }
  if (status.is_ok()) {
    return logits;
  }
  for (const Row& row : rows) {
    row.kv->abandon();
  }
  return status;
}

} // namespace ingle
