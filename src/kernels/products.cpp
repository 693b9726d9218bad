#include "kernels/products.h"

#include <algorithm>

namespace ingle {
namespace {

// Tiles that are multiplied with a panel before the next panel is taken: what
// stays in a core's second cache beside the panel.
constexpr size_t kBlockBytes = size_t{512} << 10;

int planes_of(Inputs inputs) {
  return inputs == Inputs::kTwoPlanes ? 2 : 1;
}

size_t bytes_per_token(Inputs inputs, int columns) {
  const auto n = static_cast<size_t>(columns);
  if (inputs == Inputs::kFloats) {
    return n * sizeof(float);
  }
  return n * static_cast<size_t>(planes_of(inputs)) +
      2 * sizeof(float) * (n / kChunkColumns);
}

} // namespace

ProductInputs::ProductInputs(
    KernelContext& context,
    Inputs planes,
    int tokens,
    std::initializer_list<LinearView> linears)
    : context_(context),
      planes_(planes),
      tokens_(tokens),
      tiles_((tokens + context.set.tile_tokens - 1) / context.set.tile_tokens) {
  for (const LinearView& linear : linears) {
    columns_ = linear.matrix->columns;
    (linear.matrix->is_dense() ? has_floats_ : has_planes_) = true;
    plan_adapters(linear);
  }
  const size_t bytes = tiles_bytes() + sizeof(float) * reduced_floats_;
  if (is_shared()) {
    context_.tiles.reserve(bytes);
  }
  context_.own.resize(static_cast<size_t>(context_.pool.threads()));
  for (PageBuffer& own : context_.own) {
    own.reserve(scratch_bytes() + (is_shared() ? 0 : bytes));
  }
}

// A matrix that is named twice is so for want of another: once is enough.
void ProductInputs::plan_adapters(const LinearView& linear) {
  const bool is_planned = std::ranges::any_of(
      adapted_,
      [&](const Adapted& each) { return each.matrix == linear.matrix; });
  for (size_t i = 0; !is_planned && i < linear.adapters.size(); ++i) {
    const LowRankRun& run = linear.adapters[i];
    const int ranks = run.ranks();
    adapted_.push_back({linear.matrix, run, ranks, reduced_floats_});
    reduced_floats_ +=
        static_cast<size_t>(run.tokens) * static_cast<size_t>(ranks);
  }
}

Share ProductInputs::tiles_to_pack(int thread) const {
  return is_shared() ? share_of(tiles_, thread, context_.pool.threads())
                     : Share{0, tiles_};
}

Share ProductInputs::tokens_of(int tile) const {
  return share_of(tokens_, tile, tiles_);
}

size_t ProductInputs::scratch_bytes() const {
  return static_cast<size_t>(context_.set.tile_tokens) *
      bytes_per_token(Inputs::kFloats, columns_);
}

size_t ProductInputs::tiles_bytes() const {
  size_t bytes = 0;
  bytes += has_planes_ ? bytes_per_token(planes_, columns_) : 0;
  bytes += has_floats_ ? bytes_per_token(Inputs::kFloats, columns_) : 0;
  return static_cast<size_t>(tokens_) * bytes;
}

std::byte* ProductInputs::memory_of(int thread) const {
  return is_shared()
      ? context_.tiles.data()
      : context_.own[static_cast<size_t>(thread)].data() + scratch_bytes();
}

float* ProductInputs::row_scratch(int thread, int row) const {
  const auto rows = reinterpret_cast<float*>(
      context_.own[static_cast<size_t>(thread)].data());
  return rows + static_cast<ptrdiff_t>(row) * columns_;
}

// Of all tokens: floats first, then quads, scales and sums; what adapters
// reduce them to comes after all.
Tile ProductInputs::tile(int thread, int i, Inputs inputs) const {
  std::byte* memory = memory_of(thread);
  const Share tokens = tokens_of(i);
  Tile tile{
      .inputs = inputs,
      .tokens = tokens.end - tokens.begin,
      .columns = columns_};
  const auto begin = static_cast<ptrdiff_t>(tokens.begin);
  const auto all = static_cast<ptrdiff_t>(tokens_);
  const auto floats = reinterpret_cast<float*>(memory);
  if (inputs == Inputs::kFloats) {
    tile.values = floats + begin * columns_;
    return tile;
  }
  const ptrdiff_t quads = ptrdiff_t{columns_ / 4} * planes_of(inputs);
  const ptrdiff_t chunks = columns_ / kChunkColumns;
  float* from = floats + (has_floats_ ? all * columns_ : 0);
  tile.quads = reinterpret_cast<int32_t*>(from) + begin * quads;
  tile.scales = from + all * quads + begin * chunks;
  tile.sums = from + all * (quads + chunks) + begin * chunks;
  return tile;
}

void ProductInputs::pack_tile(int thread, int i, const float* const* inputs)
    const {
  if (has_planes_) {
    context_.set.pack_tile(inputs, tile(thread, i, planes_));
  }
  if (has_floats_) {
    context_.set.pack_tile(inputs, tile(thread, i, Inputs::kFloats));
  }
  if (!adapted_.empty()) {
    reduce_tile(thread, i, inputs);
  }
}

float* ProductInputs::reduced_of(int thread, const Adapted& adapted, int token)
    const {
  const auto all = reinterpret_cast<float*>(memory_of(thread) + tiles_bytes());
  return all + adapted.begin +
      static_cast<ptrdiff_t>(token - adapted.run.first) * adapted.ranks;
}

// xA of those of the tile's tokens that have adapters.
void ProductInputs::reduce_tile(int thread, int i, const float* const* inputs)
    const {
  const Share tokens = tokens_of(i);
  for (const Adapted& adapted : adapted_) {
    const LowRankRun& run = adapted.run;
    const int begin = std::max(tokens.begin, run.first);
    const int end = std::min(tokens.end, run.first + run.tokens);
    if (begin >= end) {
      continue;
    }
    float* sums[kMaxTileTokens];
    for (int t = begin; t < end; ++t) {
      sums[t - begin] = reduced_of(thread, adapted, t);
    }
    for (const LowRank& part : run.parts) {
      context_.set.low_rank_in(
          inputs + (begin - tokens.begin),
          end - begin,
          part.a,
          part.rank,
          columns_,
          sums);
      for (int t = begin; t < end; ++t) {
        sums[t - begin] += part.rank;
      }
    }
  }
}

// Of the matrix' rows that the thread has multiplied.
void ProductInputs::add_adapters(int thread, const Product& product, Share rows)
    const {
  for (const Adapted& adapted : adapted_) {
    if (adapted.matrix != product.matrix || rows.begin >= rows.end) {
      continue;
    }
    const LowRankRun& run = adapted.run;
    float* out = product.out + run.first * product.stride + rows.begin;
    const float* values = reduced_of(thread, adapted, run.first);
    for (const LowRank& part : run.parts) {
      context_.set.low_rank_out(
          {.tokens = run.tokens,
           .values = values,
           .stride = adapted.ranks,
           .b = part.b + rows.begin,
           .b_stride = product.matrix->rows,
           .rank = part.rank,
           .scale = part.scale,
           .out_stride = product.stride},
          rows.end - rows.begin,
          out);
      values += part.rank;
    }
  }
}

void ProductInputs::multiply(int thread, const Product& product) const {
  const PackedMatrix& matrix = *product.matrix;
  const Inputs inputs = matrix.is_dense() ? Inputs::kFloats : planes_;
  const int together = product.up == nullptr ? context_.set.panels : 1;
  const int groups = (matrix.panels() + together - 1) / together;
  const Share share = share_of(groups, thread, context_.pool.threads());
  const size_t tile_bytes = bytes_per_token(inputs, columns_) *
      static_cast<size_t>(context_.set.tile_tokens);
  const int block = std::max(
      1, static_cast<int>(kBlockBytes / std::max<size_t>(1, tile_bytes)));
  for (int first = 0; first < tiles_; first += block) {
    const int last = std::min(tiles_, first + block);
    for (int group = share.begin; group < share.end; ++group) {
      const int begin = group * together;
      const int end = std::min(matrix.panels(), begin + together);
      for (int i = first; i < last; ++i) {
        const int64_t at = tokens_of(i).begin * product.stride;
        Product part = product;
        part.out += at;
        part.addend += part.addend == nullptr ? 0 : at;
        context_.set.multiply(part, begin, end, tile(thread, i, inputs));
      }
    }
  }
  if (!adapted_.empty()) {
    const int per_group = together * kPanelRows;
    add_adapters(
        thread,
        product,
        {share.begin * per_group,
         std::min(matrix.rows, share.end * per_group)});
  }
}

} // namespace ingle
