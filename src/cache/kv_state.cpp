#include "cache/kv_state.h"

#include <algorithm>

namespace ingle {

size_t KvState::bytes() const {
  size_t total = 0;
  for (const auto& layer : layers_) {
    total += layer->bytes();
  }
  return total;
}

size_t KvState::bytes_for(int64_t positions, int step) const {
  size_t total = 0;
  for (const auto& layer : layers_) {
    total += layer->bytes_for(positions, step);
  }
  return total;
}

size_t KvState::checkpoint_bytes_for(int64_t positions, int step) const {
  size_t total = 0;
  for (const auto& layer : layers_) {
    total += layer->forgets() ? layer->bytes_for(positions, step) : 0;
  }
  return total;
}

void KvState::add_buffers(KvBuffers& buffers) const {
  for (const auto& layer : layers_) {
    layer->add_buffers(buffers);
  }
}

std::vector<std::string> KvState::schemes() const {
  std::vector<std::string> schemes;
  for (const auto& layer : layers_) {
    schemes.push_back(layer->scheme());
  }
  return schemes;
}

void KvState::release_unused() {
  for (const auto& layer : layers_) {
    layer->release_unused();
  }
}

void KvState::reserve(int64_t positions) {
  for (const auto& layer : layers_) {
    layer->reserve(positions);
  }
}

std::vector<mx::array> KvState::pending_arrays() const {
  std::vector<mx::array> arrays;
  for (const auto& layer : layers_) {
    for (auto& array : layer->pending_arrays()) {
      arrays.push_back(std::move(array));
    }
  }
  if (writer_) {
    arrays.push_back(*writer_);
  }
  return arrays;
}

Status KvState::commit() {
  for (const auto& layer : layers_) {
    if (layer->offset() + layer->pending() !=
        layers_.front()->offset() + layers_.front()->pending()) {
      abandon();
      return Status::internal("the layers of a KV state differ in length");
    }
  }
  for (const auto& layer : layers_) {
    layer->commit();
  }
  writer_.reset();
  return Status::ok();
}

void KvState::abandon() {
  writer_.reset();
  for (const auto& layer : layers_) {
    intact_ &= layer->roll_back();
  }
  if (!intact_) {
    layers_.clear();
  }
}

bool KvState::forgets() const {
  return std::any_of(layers_.begin(), layers_.end(), [](const auto& layer) {
    return layer->forgets();
  });
}

int64_t KvState::first_resume_point() const {
  int64_t first = 0;
  for (const auto& layer : layers_) {
    first = std::max(first, layer->first_resume_point());
  }
  return first;
}

bool KvState::can_trim_to(int64_t position) const {
  return std::all_of(layers_.begin(), layers_.end(), [&](const auto& layer) {
    return layer->can_trim_to(position);
  });
}

Status KvState::trim(int64_t position) {
  if (!can_trim_to(position)) {
    return Status::unsupported(
        "the KV state can't be cut to " + std::to_string(position) +
        " positions");
  }
  for (const auto& layer : layers_) {
    layer->trim(position);
  }
  return Status::ok();
}

void KvCheckpoint::add_buffers(KvBuffers& buffers) const {
  for (const auto& layer : layers) {
    if (layer != nullptr) {
      layer->add_buffers(buffers);
    }
  }
}

KvState KvSnapshot::restore() const {
  std::vector<std::unique_ptr<KvCache>> caches;
  caches.reserve(layers.size());
  for (const auto& layer : layers) {
    caches.push_back(layer->restore());
  }
  return KvState(std::move(caches));
}

KvSnapshot KvState::snapshot(int64_t length) const {
  KvSnapshot snapshot;
  snapshot.layers.reserve(layers_.size());
  for (const auto& layer : layers_) {
    snapshot.layers.push_back(layer->snapshot(length));
  }
  return snapshot;
}

KvCheckpoint KvState::checkpoint() const {
  KvCheckpoint checkpoint{offset(), {}};
  for (const auto& layer : layers_) {
    checkpoint.layers.push_back(
        layer->forgets() ? layer->snapshot(offset()) : nullptr);
  }
  return checkpoint;
}

KvState KvState::restore(const KvCheckpoint& checkpoint) const {
  KvSnapshot snapshot;
  for (size_t i = 0; i < layers_.size(); ++i) {
    const auto& kept = checkpoint.layers[i];
    snapshot.layers.push_back(
        kept != nullptr ? kept : layers_[i]->snapshot(checkpoint.position));
  }
  return snapshot.restore();
}

} // namespace ingle
