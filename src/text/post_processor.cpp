#include "text/post_processor.h"

namespace tandem::text {
namespace {

TokenId read_id(const JsonPlace& place) {
  const std::int64_t id = place.integer();
  if (id < 0 || id > INT32_MAX) {
    place.refuse("{} is not a token id", id);
  }
  return static_cast<TokenId>(id);
}

}  // namespace

void PostProcessor::add(const JsonPlace& config) {
  const std::string& type = config.at("type").string();
  if (type == "Sequence") {
    const JsonPlace list = config.at("processors");
    for (std::size_t i = 0; i < list.array_size(); ++i) {
      add(list.at(i));
    }
  } else if (type == "TemplateProcessing") {
    add_template(config);
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    before_.insert(before_.begin(), read_id(config.at("cls").at(1)));
    after_.push_back(read_id(config.at("sep").at(1)));
  } else if (type != "ByteLevel") {  // which only moves offsets
    config.refuse("post-processors of type \"{}\" are not supported", type);
  }
}

void PostProcessor::add_template(const JsonPlace& config) {
  const JsonPlace single = config.at("single");
  std::vector<TokenId> before;
  bool text_seen = false;
  for (std::size_t i = 0; i < single.array_size(); ++i) {
    const JsonPlace part = single.at(i);
    if (part.has("Sequence")) {
      text_seen = true;
      continue;
    }
    const std::string& name = part.at("SpecialToken").at("id").string();
    const JsonPlace ids = config.at("special_tokens").at(name).at("ids");
    for (std::size_t k = 0; k < ids.array_size(); ++k) {
      (text_seen ? after_ : before).push_back(read_id(ids.at(k)));
    }
  }
  before_.insert(before_.begin(), before.begin(), before.end());
}

}  // namespace tandem::text
