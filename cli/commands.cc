#include "cli/commands.h"

#include <unistd.h>

#include <algorithm>

#include "cli/diagnostics_json.h"
#include "cli/for_build_systems.h"
#include "cli/ir_files.h"
#include "cli/ops_files.h"
#include "cli/progress.h"
#include "cli/schedule_files.h"
#include "cli/stated_options.h"
#include "cli/tune/replay.h"
#include "cli/version.h"
#include "emit_c/package.h"
#include "emit_cuda/package.h"
#include "ir/open_size.h"
#include "ir/ops/op.h"
#include "passes/loop/loop_pass.h"
#include "support/diff.h"
#include "support/interrupt.h"

namespace tc {
namespace {

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n <= 0) return;
    text.remove_prefix(size_t(n));
  }
}

std::string bytes_text(int64_t n) {
  if (n < 10 * 1024) return to_text(n) + " B";
  const double v = n < (10 << 20) ? double(n) / 1024 : double(n) / (1 << 20);
  const int64_t tenths = int64_t(v * 10 + 0.5);
  return to_text(tenths / 10) + "." + to_text(tenths % 10) + (n < (10 << 20) ? " KiB" : " MiB");
}

std::string count_text(size_t n, const std::string& word) {
  return to_text(int64_t(n)) + " " + word + (n == 1 ? "" : "s");
}

// "4.1 G", "810 k ", "12 ": three digits are enough to compare by.
std::string count_with_unit(int64_t n) {
  constexpr std::string_view kUnits[] = {"", "k", "M", "G", "T", "P", "E"};
  size_t unit = 0;
  double v = double(n);
  for (; v >= 999.5 && unit < 6; unit++) v /= 1000;
  const int64_t tenths = int64_t(v * 10 + 0.5);
  const bool fraction = unit > 0 && tenths < 1000;
  return to_text(fraction ? tenths / 10 : int64_t(v + 0.5)) + (fraction ? "." + to_text(tenths % 10) : "") + " " +
         std::string(kUnits[unit]);
}

// A path as a word of the shell.
std::string shell_word(const std::string& path) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("/._-+:,@%").find(c) != std::string_view::npos;
  };
  if (std::all_of(path.begin(), path.end(), plain)) return path;
  std::string s = "'";
  for (const char c : path) s += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return printable(s + "'");
}

// "x86-64-v3 has 25 kernels of its own, x86-64-v4 25, several share 7".
std::string kernels_of_list(const Program& p) {
  std::vector<int64_t> own(p.variants.size());
  int64_t shared = 0;
  for (const Kernel& k : p.kernels) (k.variants.size() == 1 ? own.at(size_t(k.variants[0])) : shared)++;
  std::string s;
  for (size_t v = 0; v < own.size(); v++)
    s += (v == 0 ? "" : ", ") + p.variants[v].cpu +
         (v == 0 ? " has " + count_text(size_t(own[v]), "kernel") + " of its own" : " " + to_text(own[v]));
  return s + ", several share " + to_text(shared);
}

std::string summary(const CommandLine& c, const Program& p, const WriteReport& w) {
  std::string s = p.name + ": " + count_text(p.steps.size(), "step") + ", " +
                  count_text(p.kernels.size(), "distinct kernel") + ", " + count_with_unit(p.macs) + "MACs\n";
  const OpenNumber open = open_number(p.workspace_bytes);
  if (!p.variants.empty()) s += "cpus      " + kernels_of_list(p) + "\n";
  s += "memory    workspace " +
       (open.times > 0
            ? bytes_text(open.rest) + " and " + bytes_text(open.times) + " for each of the size that has no bound"
            : bytes_text(p.workspace_bytes) + " (tensors " + bytes_text(p.arena_bytes) + ", without reuse " +
                  bytes_text(p.naive_bytes) + ")") +
       ", weights " + bytes_text(p.weights_bytes) + "\n";
  s += "wrote     " + printable(c.out) + ": " + count_text(w.written.size(), "file") + ", " +
       to_text(int64_t(w.unchanged.size())) + " unchanged";
  if (!w.removed.empty()) s += ", " + to_text(int64_t(w.removed.size())) + " removed";
  const std::string dir = c.out + (c.out.ends_with("/") ? "" : "/");
  if (c.request.target.is_cuda())
    return s + "\nnext      cmake -S " + shell_word(c.out) + " -B " + shell_word(dir + "build") + " && cmake --build " +
           shell_word(dir + "build") + " && " + shell_word(dir + "build/" + p.name) + "\n";
  return s + "\nnext      make -C " + shell_word(c.out) + " && " + shell_word(dir + p.name) + "\n";
}

/// What --check says of a file: what patch -p1 in DIR takes; under --quiet its name.
std::string difference_text(const CommandLine& c, const PackageDifference& d) {
  if (c.quiet) return d.what + " " + printable(d.path) + "\n";
  const std::string path = printable(d.path);
  const std::string before = d.what == "missing" ? "/dev/null" : "a/" + path,
                    after = d.what == "stale" ? "/dev/null" : "b/" + path;
  if (d.binary) return "Binary files " + before + " and " + after + " differ\n";
  const std::string diff = unified_diff(d.before, d.after, before, after);
  // Empty files, and links to files of the same bytes.
  return diff.empty() ? d.what + " " + path + "\n" : diff;
}

}  // namespace

void print_out(std::string_view text) { write_all(1, text); }
void print_err(std::string_view text) { write_all(2, text); }

void need_model(const CommandLine& c) {
  if (c.model.empty())
    throw Error(Diagnostic{
        "TC0001", ExitCode::Usage, {}, "no model given", {"usage: tc-emit [COMMAND] [OPTIONS] MODEL [-o DIR]"}, false});
}

void need_out(const CommandLine& c) {
  if (c.out.empty())
    throw Error(Diagnostic{"TC0001", ExitCode::Usage, {}, "no output folder given", {"add -o DIR"}, false});
}

void say_native_cpu(const CommandLine& c) {
  if (c.native && !c.json_diagnostics) print_err("--cpu native is " + std::string(c.request.target.cpu.name) + "\n");
}

ExitCode report(const Diagnostics& d, const CommandLine& c) {
  for (const Diagnostic& x : d.list()) print_err(c.json_diagnostics ? diagnostic_json(x) : x.render() + "\n");
  return d.exit_code();
}

std::vector<OutputFile> package_of(const Program& p, const CommandLine& c) {
  const PackageOptions o{.single_file = c.single_file,
                         .any_cpu = c.any_cpu && !c.request.target.is_cuda(),
                         .jit = c.jit,
                         .cuda_graphs = c.cuda_graphs,
                         .version = std::string(version()),
                         .options = stated_options(c),
                         .progress = [&c](const std::string& part) { c.request.listener.tell("write", part); }};
  return c.request.target.is_cuda() ? cuda_package(p, o) : c_package(p, o);
}

ExitCode emit_command(const CommandLine& c) {
  need_model(c);
  const bool looks_inside = !c.write_ir.empty() || !c.write_schedules.empty() || !c.request.options.stop_after.empty();
  if (!c.list_outputs && !looks_inside) need_out(c);
  say_native_cpu(c);
  Diagnostics problems;
  CompileRequest request = c.request;
  std::vector<std::string> read;
  watch_reads(c, request, read);
  request.package = c.makes_program();
  std::optional<IrWriter> ir;
  if (!c.write_ir.empty()) ir.emplace(c, request);
  std::optional<ScheduleWriter> schedules;
  if (!c.write_schedules.empty()) schedules.emplace(c, request);
  std::optional<RecordsUsed> records;
  if (!c.records.empty()) records.emplace(c, request);
  const Compilation r = compile(request, problems);
  if (const ExitCode e = report(problems, c); e != ExitCode::Ok) {
    if (!c.json_diagnostics) print_err("nothing was written\n");
    return e;
  }
  if (ir)
    if (const std::string wrote = ir->write(); !c.quiet) print_out(wrote);
  if (schedules)
    if (const std::string wrote = schedules->write(); !c.quiet) print_out(wrote);
  if (records && !c.quiet) print_out(records->text());
  if (!c.makes_package()) return ExitCode::Ok;
  c.request.listener.tell("text");
  const std::vector<OutputFile> files = package_of(r.program, c);
  c.request.listener.tell("");
  if (c.check) {
    const std::vector<PackageDifference> differences = compare_package(c.out, files);
    for (const PackageDifference& d : differences) print_out(difference_text(c, d));
    return differences.empty() ? ExitCode::Ok : ExitCode::Mismatch;
  }
  if (c.list_outputs) {
    for (const OutputFile& f : files) print_out(f.path + "\n");
    return ExitCode::Ok;
  }
  c.request.listener.tell("write");
  const WriteReport w = c.depfile.empty() ? write_package(c.out, files) : write_with_depfile(c, files, read);
  c.request.listener.tell("");
  if (!c.quiet) print_out(summary(c, r.program, w));
  return ExitCode::Ok;
}

ExitCode check_command(const CommandLine& c) {
  need_model(c);
  Diagnostics problems;
  CompileRequest request = c.request;
  request.package = request.options.stop_after.empty();
  const Compilation r = compile(request, problems);
  if (const ExitCode e = report(problems, c); e != ExitCode::Ok) return e;
  print_out(printable(c.model) + ": every node is supported\n");
  return ExitCode::Ok;
}

ExitCode passes_command(const CommandLine&) {
  std::string s;
  const auto row = [&s](std::string_view name, const std::string& level, std::string_view summary) {
    s += std::string(name) + std::string(name.size() < 28 ? 28 - name.size() : 1, ' ') + level + "  " +
         std::string(summary) + "\n";
  };
  for (const PassInfo& p : graph_passes()) row(p.name, "-O" + to_text(int64_t(p.opt_level)), p.summary);
  const std::pair<const char*, const std::vector<LoopPass>&> lists[] = {
      {"kernels of C", c_loop_passes()},
      {"CUDA kernels", cuda_loop_passes()},
      {"functions of the device", device_loop_passes()},
      {"finished kernels", last_loop_passes()}};
  for (const auto& [what, list] : lists) {
    s += std::string("\nloop passes, ") + what + ":\n";
    for (const LoopPass& p : list) row(p.name, "   ", p.summary);
  }
  print_out(s);
  return ExitCode::Ok;
}

ExitCode run_command(CommandLine c) {
  if (c.version) {
    print_out("tc-emit " + std::string(version()) + ", operator set " + to_text(int64_t(newest_opset())) + "\n");
    return ExitCode::Ok;
  }
  if (c.help) {
    print_out(help_text(c.command_given ? c.command : ""));
    return ExitCode::Ok;
  }
  if (!load_ops_files(c) || !load_schedules(c) || !load_ir_file(c)) {
    if (c.command == "emit") print_err("nothing was written\n");
    return ExitCode::Rejected;
  }
  if (c.command != "tune" && c.command != "records") load_records(c);
  Progress progress(printable(c.model.substr(c.model.find_last_of('/') + 1), 40),
                    c.quiet ? ProgressMode::None : c.progress);
  c.request.listener.progress = [&](const std::string& phase, const std::string& part) {
    stop_if_interrupted();
    progress.show(phase, part);
  };
  c.request.listener.log = [&](const std::string& text) {
    progress.clear();
    print_err(text);
  };
  if (c.command == "help") return help_command(c);
  if (c.command == "explain") return explain_command(c);
  if (c.command == "cmake") return cmake_command(c);
  if (c.command == "completion") return completion_command(c);
  if (c.command == "man") return man_command(c);
  if (c.command == "check") return check_command(c);
  if (c.command == "info") return info_command(c);
  if (c.command == "ops") return ops_command(c);
  if (c.command == "doctor") return doctor_command(c);
  if (c.command == "passes") return passes_command(c);
  if (c.command == "verify") return verify_command(c);
  if (c.command == "diff") return diff_command(c);
  if (c.command == "report") return report_command(c);
  if (c.command == "bench") return bench_command(c);
  if (c.command == "tune") return tune_command(c);
  if (c.command == "records") return records_command(c);
  if (c.command == "reduce") return reduce_command(c);
  if (c.command == "run") return run_model_command(c);
  return emit_command(c);
}

}  // namespace tc
