// The support text that is copied into emitted packages, and the whole-file templates (*.in), which emit_c fills. templates/text/README.md
// lists the files, what each one needs and the holes of the templates.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace tc {

struct SupportFile {
  std::string_view name;  // "tc_simd.h", "main.c.in", "cuda_on_cpu/cuda_on_cpu.h"
  std::string_view text;
};

/// Every file of templates/text/ that packages are made from, by name.
const std::vector<SupportFile>& support_files();

/// The text of one of them; an InternalError if there is none of that name.
std::string_view support_text(std::string_view name);

/// A support file as packages with or without tensors of strings have it: what stands between "#ifdef TC_STRINGS", "#else"
/// and "#endif" stays or goes, and these lines go.
std::string support_for(std::string_view name, bool strings);

/// `names` and the support files that these include then, by name, each once.
std::vector<std::string_view> with_included(const std::vector<std::string_view>& names, bool strings = false);

/// The names of all support files below `folder`, which ends in '/': "cuda_on_cpu/".
std::vector<std::string_view> support_folder(std::string_view folder);

}  // namespace tc
