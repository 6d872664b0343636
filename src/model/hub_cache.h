// Models that the Hugging Face tools have already fetched. Never touches the network.
#pragma once

#include <filesystem>
#include <string>

namespace tandem::model {

/// True for `org/name`: one slash, no leading dot or slash, the characters the hub allows.
bool is_hub_name(const std::string& model);

/// $HF_HUB_CACHE, else $HF_HOME/hub, else ~/.cache/huggingface/hub.
std::filesystem::path hub_cache_root();

/// The snapshot folder of `org/name` at a revision: 40 hex digits, a branch or a tag.
///
/// Throws UserError that names what is missing and the `hf download` line that fetches it; a link
/// to a blob that is gone counts as missing.
std::filesystem::path find_in_hub_cache(const std::string& name,
                                        const std::string& revision = "main");

}  // namespace tandem::model
