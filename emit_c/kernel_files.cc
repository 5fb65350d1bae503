#include "emit_c/kernel_files.h"

#include <map>

namespace tc {

std::vector<KernelFile> kernel_files(const Program& p, const std::vector<KernelText>& texts) {
  std::vector<KernelFile> files;
  if (texts.size() <= kKernelsApart) {
    for (size_t i = 0; i < texts.size(); i++) files.push_back({p.kernels[i].name, {texts[i]}});
    return files;
  }
  std::map<char, std::vector<KernelText>> by_digit;
  for (size_t i = 0; i < texts.size(); i++) by_digit[p.kernels[i].name.back()].push_back(texts[i]);
  for (auto& [digit, kernels] : by_digit) files.push_back({std::string("kernels_") + digit, std::move(kernels)});
  return files;
}

Needs needs_of(const std::vector<KernelText>& kernels) {
  Needs all;
  for (const KernelText& k : kernels) all.add(k.needs);
  return all;
}

std::string kernel_source(const KernelFile& f, const std::string& prefix) {
  std::string s = std::string(kLicenseLine) + "\n#include \"../" + prefix + "_kernels.h\"\n" +
                  include_lines(needs_of(f.kernels), "../");
  for (const KernelText& k : f.kernels) s += "\n" + k.before + k.function;
  return s;
}

}  // namespace tc
