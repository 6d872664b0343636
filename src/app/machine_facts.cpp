#include "app/machine_facts.h"

#include <fstream>

namespace tandem::app {
namespace {

std::string quoted(const std::string& word) {
  const bool plain =
      !word.empty() && word.find_first_of(" \t\n'\"\\$`*?;&|<>()[]{}#~!") == std::string::npos;
  std::string text = plain ? word : "'";
  for (std::size_t i = 0; !plain && i < word.size(); ++i) {
    text += word[i] == '\'' ? "'\\''" : std::string(1, word[i]);
  }
  return plain ? text : text + "'";
}

}  // namespace

std::string cpu_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("model name")) {
      return line.substr(line.find(':') + 2);
    }
  }
  return "unknown";
}

std::string command_line() {
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  std::string text;
  for (std::string word; std::getline(in, word, '\0');) {
    text += (text.empty() ? "" : " ") + quoted(word);
  }
  return text;
}

}  // namespace tandem::app
