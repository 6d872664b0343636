#include "rollout/admission.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.h"

namespace tandem::rollout {
namespace {

void check_numbers(const GroupRequest& request) {
  request.params.validate();
  if (request.num_samples < 1) {
    fail<UserError>("draw {}: {} samples of a prompt", request.draw, request.num_samples);
  }
  const bool in_range = request.draw >= 0 && request.draw < (std::int64_t{1} << 40) &&
                        request.first_sample >= 0 && request.turn >= 0 &&
                        std::int64_t{request.first_sample} + request.num_samples < (1 << 24) &&
                        request.turn < (1 << 16);
  TANDEM_CHECK(in_range,
               "draw {}, samples from {}, turn {}: outside the range of random keys",
               request.draw,
               request.first_sample,
               request.turn);
  if (request.prompt.empty()) {
    fail<UserError>("draw {}: the prompt is empty", request.draw);
  }
}

void check_length(const GroupRequest& request, const SchedulerConfig& config) {
  const auto length = static_cast<std::int64_t>(request.prompt.size());
  if (config.max_model_len > 0 && length >= config.max_model_len) {
    fail<UserError>("draw {}: a prompt of {} tokens leaves no room below max_model_len = {}",
                    request.draw,
                    length,
                    config.max_model_len);
  }
  if (request.num_samples > config.max_sequences) {
    fail<UserError>("draw {}: {} samples of one prompt, but max_sequences = {}",
                    request.draw,
                    request.num_samples,
                    config.max_sequences);
  }
}

// The KV of the very last token is never needed.
void check_blocks(const GroupState& group, const BlockManager& blocks) {
  const std::int64_t need = blocks.blocks_for(group.prompt_length() + group.max_new_tokens - 1);
  if (need > blocks.num_usable()) {
    fail<UserError>(
        "draw {}: {} prompt and {} new tokens need {} KV blocks of {} tokens, the pool has {}: "
        "give more memory to the KV cache or lower max_new_tokens",
        group.request.draw,
        group.prompt_length(),
        group.max_new_tokens,
        need,
        blocks.block_size(),
        blocks.num_usable());
  }
}

}  // namespace

std::unique_ptr<GroupState> check_request(GroupRequest request,
                                          const SchedulerConfig& config,
                                          const BlockManager& blocks) {
  check_numbers(request);
  check_length(request, config);
  auto group = std::make_unique<GroupState>();
  group->request = std::move(request);
  group->max_new_tokens = group->request.params.max_new_tokens;
  if (config.max_model_len > 0) {
    group->max_new_tokens =
        std::min(group->max_new_tokens, config.max_model_len - group->prompt_length());
  }
  group->num_unfinished = group->request.num_samples;
  group->open.resize(static_cast<std::size_t>(group->request.num_samples));
  std::iota(group->open.begin(), group->open.end(), 0);
  check_blocks(*group, blocks);
  return group;
}

bool shares_unwritten(const Sequence& ahead,
                      const CacheRoot& root,
                      std::span<const TokenId> ids,
                      std::int64_t num_hits,
                      std::int32_t block_size) {
  if (ahead.is_decoding() || ahead.root != root) {
    return false;
  }
  const auto usable = ids.first(ids.size() - 1);  // the last token is always computed
  const auto differs = std::ranges::mismatch(usable, ahead.ids).in1;
  const std::int64_t num_common = (differs - usable.begin()) / block_size;
  return num_common > num_hits && ahead.computed < num_common * block_size;
}

}  // namespace tandem::rollout
