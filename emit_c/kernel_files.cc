#include "emit_c/kernel_files.h"

#include <map>

#include "emit_c/variants.h"

namespace tc {

std::vector<KernelFile> kernel_files(const Program& p, const std::vector<KernelText>& texts) {
  std::vector<KernelFile> files;
  if (texts.size() <= kKernelsApart) {
    for (size_t i = 0; i < texts.size(); i++) files.push_back({p.kernels[i].name, {texts[i]}, p.kernels[i].variants});
    return files;
  }
  std::map<std::pair<char, std::vector<int>>, std::vector<KernelText>> together;
  for (size_t i = 0; i < texts.size(); i++)
    together[{p.kernels[i].name.back(), p.kernels[i].variants}].push_back(texts[i]);
  for (auto& [key, kernels] : together) {
    std::string stem = std::string("kernels_") + key.first;
    for (const int v : key.second) stem += "_" + variant_name(p.variants.at(size_t(v)));
    files.push_back({stem, std::move(kernels), key.second});
  }
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
