#include "cli/ir_files.h"

#include <algorithm>
#include <fstream>

#include "cli/commands.h"
#include "cli/ir_options.h"
#include "cli/new_file.h"
#include "cli/option_table.h"
#include "support/read_file.h"
#include "support/xxh64.h"

namespace tc {
namespace {

using language::DataPlace;

/// FILE.tc.bin, opened when the first elements are asked for.
class DataFile {
 public:
  explicit DataFile(std::string path) : path_(std::move(path)) {}

  Constant read(const DataPlace& at, DType dtype, const Dims& dims, std::string& why_not) {
    why_not = "there are no elements at " + to_text(int64_t(at.offset)) + " in " + printable(path_);
    if (!file_.is_open()) open();
    if (!file_.is_open() || at.offset > size_ || at.bytes > size_ - at.offset) return nullptr;
    MutableTensor m = new_tensor(dtype, dims);
    file_.seekg(std::streamoff(at.offset));
    file_.read(reinterpret_cast<char*>(m.bytes), std::streamsize(at.bytes));
    if (!file_) return nullptr;
    why_not = "the elements in " + printable(path_) + " are not those that this text was written with";
    if (hex(xxh64(m.bytes, at.bytes), 16) != at.hash) return nullptr;
    return std::make_shared<TensorData>(std::move(m.data));
  }

 private:
  void open() {
    file_.open(path_, std::ios::binary);
    if (!file_.is_open()) return;
    file_.seekg(0, std::ios::end);
    size_ = size_t(file_.tellg());
  }

  std::string path_;
  std::ifstream file_;
  size_t size_ = 0;
};

CommandLine default_line() {
  CommandLine c;
  c.request.target.cpu = any_cpu();
  return c;
}

const Option* stated_option(const std::string& flag) {
  const Option* o = find_option(flag);
  return o && o->stated ? o : nullptr;
}

/// What is given has to be what the file says; what the file does not say of the import cannot be made up for.
void compare_options(const CommandLine& given, const CommandLine& file, const language::ModuleHeader& header) {
  for (const auto& [flag, value] : given.given) {
    if (flag == "--ops") usage("--ops is for models; " + printable(given.model) + " holds the operators that it uses");
    const Option* o = stated_option(flag);
    if (!o) continue;
    const bool said = std::any_of(header.options.begin(), header.options.end(),
                                  [&word = flag](const auto& entry) { return entry.first == word; });
    if (!said && !(o->commands & kInfo)) continue;
    const std::vector<std::string> all = said ? o->stated(file) : std::vector<std::string>();
    CommandLine one = default_line();
    o->apply(one, value);
    for (const std::string& v : o->stated(one))
      if (std::find(all.begin(), all.end(), v) == all.end())
        usage(std::string(o->flag) + " " + printable(v) + " is given, but " + printable(given.model) + " was written " +
                  (all.empty() ? "without " + std::string(o->flag)
                               : "with " + std::string(o->flag) + " " + printable(join(all, ", "))),
              "leave the option out, or write the file again from the model");
  }
}

void take_options(CommandLine& c, const language::ModuleHeader& header) {
  CommandLine file = default_line();
  for (const auto& [flag, value] : header.options) {
    const Option* o = stated_option(flag);
    if (!o) usage(printable(c.model) + " states the option " + printable(flag) + ", which says nothing of a package");
    o->apply(file, value);
  }
  compare_options(c, file, header);
  for (const auto& [flag, value] : header.options) stated_option(flag)->apply(c, value);
  refuse_idle_options(c);
}

size_t position_of(const std::string& label) {
  const auto& list = graph_passes();
  for (size_t k = 0; k < list.size(); k++)
    if (pass_label(list, k) == label) return k + 1;
  return 0;
}

void take_position(CommandLine& c, const std::string& after) {
  const size_t begin = position_of(after);
  if (!after.empty() && begin == 0)
    usage(printable(c.model) + " begins after a pass " + printable(after) + ", which this tc-emit does not have");
  c.request.options.begin_after = after;
  const std::string behind = printable(c.model) + " is behind " + printable(after) + " already";
  if (!c.write_ir.empty() && begin > 0 && position_of(c.after) <= begin)
    usage(c.after.empty() ? behind + ": say with --after where --write-ir writes"
                          : "--after " + c.after + ": " + behind);
  const std::string& stop = c.request.options.stop_after;
  if (!stop.empty() && position_of(stop) <= begin) usage("--stop-after " + stop + ": " + behind);
}

}  // namespace

bool load_ir_file(CommandLine& c) {
  const unsigned command = find_command(c.command)->bit;
  if (!c.reads_ir() || !(command & kImports)) return true;
  constexpr unsigned kTakeIr = kEmit | kCheck | kBench | kCmake;
  if (!(command & kTakeIr)) usage(c.command + " needs the model, not a graph as text");
  const language::SourceText source{c.model, read_file(c.model)};
  DataFile file(c.model + ".bin");
  language::Problems problems;
  auto module = language::parse_module(
      source, [&](const DataPlace& at, DType t, const Dims& d, std::string& why) { return file.read(at, t, d, why); },
      problems);
  for (const language::Problem& p : problems) print_err(render(source, p));
  if (!module) return false;
  take_options(c, module->header);
  take_position(c, module->header.after);
  c.request.graph = std::make_shared<const Graph>(std::move(module->graph));
  return true;
}

IrWriter::IrWriter(const CommandLine& c, CompileRequest& request) : c_(c) {
  const std::string& stop = request.options.stop_after;
  if (!stop.empty() && position_of(c.after) > position_of(stop))
    usage("--after " + c.after + " is behind --stop-after " + stop);
  request.passed = [this](const std::string& pass, const Graph& g) {
    if (pass != c_.after) return;
    graph_ = language::graph_text(g, language::Elements::Hashed);
    nodes_ = g.num_nodes();
  };
  if (!c.makes_program() && stop.empty()) request.options.stop_after = c.after;
}

std::string IrWriter::write() const {
  check(graph_.has_value(), "the graph of --write-ir was not met");
  if (!graph_->unspeakable.empty())
    throw Error(
        {"TC3105", ExitCode::Unsupported, {}, "the graph cannot be written as text here", graph_->unspeakable, false});
  const NewFile text(c_.write_ir, to_text(language::ModuleHeader{c_.after, options_of_ir(c_)}) + graph_->text);
  size_t end = 0;
  const NewFile data(c_.write_ir + ".bin", [&](std::ostream& f) {
    for (const auto& [at, c] : graph_->data) {
      f << std::string(at.offset - end, '\0');
      f.write(reinterpret_cast<const char*>(c->bytes.get()), std::streamsize(at.bytes));
      end = at.offset + at.bytes;
    }
  });
  if (end > 0) data.put_in_place();
  text.put_in_place();
  return "wrote     " + printable(c_.write_ir) + ": " + to_text(int64_t(nodes_)) + " nodes" +
         (c_.after.empty() ? " as they were imported" : " after " + c_.after) + "\n";
}

}  // namespace tc
