// Inputs of products, packed once for all matrices that they are multiplied
// with. Part of layer.h.
//
// Threads: constructed outside of a region, used in one by every thread.
#pragma once

#include <initializer_list>
#include <vector>

#include "kernels/layer.h"

namespace ingle {

class ProductInputs {
 public:
  // For `tokens` tokens and these matrices, all with as many columns. Takes
  // the context's memory for tiles: of two that are used one after the other,
  // the second overwrites what the first packed. Throws std::bad_alloc.
  ProductInputs(
      KernelContext& context,
      int tokens,
      std::initializer_list<LinearView> linears)
      : ProductInputs(context, context.planes, tokens, linears) {}
  // With planes of its own choice.
  ProductInputs(
      KernelContext& context,
      Inputs planes,
      int tokens,
      std::initializer_list<LinearView> linears);

  // row(t, scratch) gives token t's inputs, made in `scratch` or elsewhere.
  // Few tokens are packed by each thread for itself, many by all together; the
  // latter has a barrier at its end. What adapters make of the inputs first is
  // made here, too.
  template <class Row>
  void pack(int thread, Row&& row) {
    const Share mine = tiles_to_pack(thread);
    for (int i = mine.begin; i < mine.end; ++i) {
      const Share tokens = tokens_of(i);
      const float* inputs[kMaxTileTokens];
      for (int t = tokens.begin; t < tokens.end; ++t) {
        const int at = t - tokens.begin;
        inputs[at] = row(t, row_scratch(thread, at));
      }
      pack_tile(thread, i, inputs);
    }
    if (is_shared()) {
      context_.pool.barrier(thread);
    }
  }

  // The thread's share of the product's panels, for all tokens, and what the
  // adapters of a linear with this matrix add to them. product.out and
  // product.addend are those of the first token. Requires: no `up` where there
  // are adapters.
  void multiply(int thread, const Product& product) const;

 private:
  static constexpr int kMaxTileTokens = 8;

  // A run of tokens whose adapters add something to products with a matrix.
  struct Adapted {
    const PackedMatrix* matrix = nullptr;
    LowRankRun run;
    int ranks = 0;
    size_t begin = 0; // of what xA is, [tokens][ranks], among that of all
  };

  void plan_adapters(const LinearView& linear);
  void reduce_tile(int thread, int i, const float* const* inputs) const;
  void add_adapters(int thread, const Product& product, Share rows) const;
  float* reduced_of(int thread, const Adapted& adapted, int token) const;
  // One tile is packed by each thread for itself.
  bool is_shared() const {
    return tiles_ > 1;
  }
  Share tiles_to_pack(int thread) const;
  std::byte* memory_of(int thread) const; // of tiles
  Share tokens_of(int tile) const;
  Tile tile(int thread, int i, Inputs inputs) const;
  void pack_tile(int thread, int i, const float* const* inputs) const;
  float* row_scratch(int thread, int row) const;
  size_t scratch_bytes() const;
  size_t tiles_bytes() const;

  KernelContext& context_;
  Inputs planes_;
  int tokens_;
  int columns_ = 0;
  int tiles_;
  bool has_planes_ = false; // what the matrices need
  bool has_floats_ = false;
  std::vector<Adapted> adapted_; // empty: nobody has an adapter
  size_t reduced_floats_ = 0;
};

} // namespace ingle
