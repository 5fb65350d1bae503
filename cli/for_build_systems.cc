#include "cli/for_build_systems.h"

#include <algorithm>
#include <filesystem>

#include "cli/commands.h"
#include "cli/new_file.h"
#include "cli/tune/record.h"
#include "support/read_file.h"
#include "support/text.h"

namespace tc {
namespace {

namespace fs = std::filesystem;

// What CMake opens while it configures; sources and headers need not be there.
bool is_read_by_cmake(const OutputFile& f) { return f.path == "CMakeLists.txt" || f.path.starts_with("cuda_on_cpu/"); }

std::string path_of_make(const std::string& path) {
  std::string s;
  for (const char ch : path) {
    if (ch == '\n' || ch == '\r')
      throw Error("TC0603", ExitCode::Io, "a rule of make cannot name the file " + printable(path));
    if (ch == ' ' || ch == '\t' || ch == '#') s += '\\';
    if (ch == '$') s += '$';
    s += ch;
  }
  return s;
}

}  // namespace

void watch_reads(const CommandLine& c, CompileRequest& request, std::vector<std::string>& read) {
  read.push_back(request.model);
  if (c.reads_ir() && fs::exists(request.model + ".bin")) read.push_back(request.model + ".bin");
  read.insert(read.end(), c.ops_files.begin(), c.ops_files.end());
  if (!c.schedules.empty()) read.push_back(c.schedules);
  const std::vector<std::string> records = record_paths(c.records);
  read.insert(read.end(), records.begin(), records.end());
  const std::string folder = fs::path(request.model).parent_path().string();
  request.import.data_file_read = [&read, folder](const std::string& location) {
    read.push_back(folder.empty() ? location : folder + "/" + location);
  };
}

std::string depfile_text(const std::string& target, const std::vector<std::string>& read) {
  std::string s = path_of_make(target) + ":";
  for (const std::string& path : read) s += " \\\n  " + path_of_make(path);
  return s + "\n";
}

WriteReport write_with_depfile(const CommandLine& c, const std::vector<OutputFile>& files,
                               const std::vector<std::string>& read) {
  const std::string manifest = c.out + (c.out.ends_with("/") ? "" : "/") + "manifest.json";
  const NewFile depfile(c.depfile, depfile_text(manifest, read));
  const WriteReport w = write_package(c.out, files);
  std::error_code ec;
  fs::last_write_time(manifest, fs::file_time_type::clock::now(), ec);
  if (ec) cannot_write(manifest);
  depfile.put_in_place();
  return w;
}

// Prints "name N", "input FILE" and "output FILE" lines and writes the build files into DIR, each only where it changes,
// so that tc_emit_add_model can add the folder before the rest of the package is emitted.
ExitCode cmake_command(const CommandLine& c) {
  need_model(c);
  need_out(c);
  Diagnostics problems;
  CompileRequest request = c.request;
  std::vector<std::string> read;
  watch_reads(c, request, read);
  const Compilation r = compile(request, problems);
  if (const ExitCode e = report(problems, c); e != ExitCode::Ok) return e;
  std::string lines = "name " + r.program.name + "\n";
  for (const std::string& path : read) lines += "input " + path + "\n";
  for (const OutputFile& f : package_of(r.program, c)) {
    lines += "output " + f.path + "\n";
    const fs::path path = fs::path(c.out) / f.path;
    if (!is_read_by_cmake(f) || try_read_file(path) == f.bytes) continue;
    std::error_code ec;
    fs::create_directories(path.parent_path(), ec);
    NewFile(path, f.bytes).put_in_place();
  }
  print_out(lines);
  return ExitCode::Ok;
}

}  // namespace tc
