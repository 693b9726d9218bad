// What Attention works out for the tokens of a layer, and the memory that it
// works in. Part of layer.h: kept from layer to layer, because a step of one
// token is too short to allocate in.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/arena.h"
#include "kernels/kernel_set.h"

namespace ingle {

struct AttentionScratch {
  struct Token {
    int row = 0;
    int64_t position = 0;
    // Where its heads have a result for each of so many blocks; -1: nowhere.
    int first_partial = -1;
    int blocks = 0;
  };
  // What one thread does at a time: the queries of one KV head for some tokens
  // of a row, over some blocks of its positions.
  struct Item {
    int row = 0;
    int kv_head = 0;
    int first_token = 0; // among all
    int tokens = 0;
    int64_t first_block = 0;
    int64_t last_block = 0;
    // Of one block: which one of its row's, and how many positions it looks at
    // (at least one), and the items before it do.
    int piece = 0;
    int64_t work = 0;
    int64_t work_before = 0;
  };

  std::vector<Token> tokens{};
  std::vector<Item> items{};
  int64_t few_work = 0; // of all items of one block
  std::vector<PartialAttention> partials{}; // block by block

  // Of each thread and KV head, for the blocks of a row of few tokens: an
  // item's queries, packed, with their scales, and which token is their first.
  std::vector<int> packed{};
  PageBuffer queries{};
  std::vector<float> query_scales{};
  // Of each thread: an item's results so far, then those of one block.
  std::vector<PartialAttention> running{};

  PageBuffer widened{}; // of each thread: a block

  PageBuffer partial_values{};
  PageBuffer running_values{};
};

} // namespace ingle
