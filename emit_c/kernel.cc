#include "emit_c/kernel.h"

#include <algorithm>
#include <set>

#include "emit_c/stmt.h"
#include "ir/loop/build.h"
#include "ir/loop/named_buffers.h"
#include "ir/loop/visit.h"
#include "support/text.h"

namespace tc {
namespace {

bool is_written(Param::Role r) { return r == Param::Role::Output || r == Param::Role::Scratch; }

std::string parameter(const Param& p, bool restricted) {
  if (p.role == Param::Role::Status) return "int32_t *status";
  if (p.role == Param::Role::Strings) return "tc_made *made";
  if (p.role == Param::Role::Scratch) return "unsigned char *scratch";
  const std::string type = (is_written(p.role) ? "" : "const ") + std::string(info(p.buffer->dtype).c_type) + " *";
  return type + (restricted ? "TC_RESTRICT " : "") + p.buffer->name;
}

// The status word has no accesses of its own: Index raises it.
bool uses(const Stmt& s, const Buffer& b) { return b->name == "status" || uses_buffer(s, b); }

std::string arguments(const std::vector<std::string>& list) { return list.empty() ? "void" : join(list, ", "); }

std::string name_of(const Param& p) {
  return p.role == Param::Role::Status    ? "status"
         : p.role == Param::Role::Scratch ? "scratch"
         : p.role == Param::Role::Strings ? "made"
                                          : p.buffer->name;
}

// The parameters that a part function names.
struct Uses {
  std::set<const BufferDef*> buffers;  // looked up only
  bool status = false;

  void add(const Expr& e) {
    walk(e, [&](const Expr& x) {
      if (const Load* l = as<Load>(x)) buffers.insert(l->buffer.get());
      if (const Apply* k = as<Apply>(x)) status = status || k->op == Op::Index;
      return true;
    });
  }
  /// Of a Let or an Alias, without its body.
  void add_head(const Stmt& s) {
    if (const Let* k = as<Let>(s)) add(k->value);
    if (const Alias* k = as<Alias>(s)) {
      buffers.insert(k->base.get());
      add(k->offset);
    }
  }
  void add(const Stmt& s) {
    walk(
        s,
        [&](const Stmt& x) {
          for (const Buffer& b : named_buffers(x)) buffers.insert(b.get());
          return true;
        },
        [&](const Expr& e) {
          add(e);
          return false;
        });
  }
};

// The names of loop variables that parts are told.
std::vector<std::string> counters_of(const Kernel& k) {
  std::vector<std::string> names;
  for (const ParallelPart& p : k.parts)
    for (const Var& v : p.counters)
      if (std::find(names.begin(), names.end(), v->name) == names.end()) names.push_back(v->name);
  return names;
}

class KernelPrinter {
 public:
  KernelPrinter(const Kernel& k, const std::string& prefix)
      : k_(k), full_(prefix + "_" + k.name), wide_(k.wide_index) {}

  KernelText print(const std::string& cpu) {
    std::vector<std::string> params;
    for (const Param& p : k_.params) {
      params.push_back(parameter(p, is_restricted(p)));
      if (p.buffer->dtype == DType::String) text_.needs.strings = true;
    }
    text_.prototype = "void " + full_ + "(" + arguments(params) + ")";
    SourceWriter inner;  // the function's own body; it finds the parts, which are printed before it
    inner.indent();
    StmtPrinter printer(inner, text_.needs, k_);
    printer.part_call = "TC_PARALLEL_FOR(" + full_ + "_{part}, &arguments, {chunks});";
    for (const Param& p : k_.params)
      if (p.role != Param::Role::Strings && !uses(k_.body, p.buffer))
        inner.line("(void)" + p.buffer->name + ";");  // of a result without elements
    printer.print(k_.body);
    print_head_comment(out_, k_, cpu);
    if (!printer.parts.empty()) arguments_type();
    for (size_t i = 0; i < printer.parts.size(); i++) part(printer.parts[i], i);
    text_.before = out_.take();
    out_.line(text_.prototype);
    open();
    if (!printer.parts.empty()) {
      std::vector<std::string> names;
      for (const Param& p : k_.params) names.push_back(name_of(p));
      const std::vector<std::string> counters = counters_of(k_);
      for (size_t i = 0; i < counters.size(); i++) names.push_back("0");
      out_.line((counters.empty() ? "const " : "") + full_ + "_arguments arguments = {" + join(names, ", ") + "};");
    }
    out_.raw_block(inner.text());
    close();
    text_.function = out_.take();
    return std::move(text_);
  }

 private:
  static bool is_restricted(const Param& p) {
    return p.role != Param::Role::Status && p.role != Param::Role::Scratch && p.role != Param::Role::Strings;
  }

  void open() { out_.open(); }
  void close() { out_.close(); }

  void arguments_type() {
    out_.line("typedef struct {");
    out_.indent();
    for (const Param& p : k_.params) out_.line(parameter(p, false) + ";");
    for (const std::string& c : counters_of(k_)) out_.line(counter_type() + c + ";");
    out_.dedent();
    out_.line("} " + full_ + "_arguments;");
    out_.blank();
  }

  std::string counter_type() const { return wide_ ? "int64_t " : "int "; }

  /// One chunk, as a function whose parameters say that they do not overlap (compilers do not believe it of pointers that come from
  /// memory), and the one that threads call.
  void part(const For& chunks, size_t index) {
    const std::string number = index > 0 ? to_text(int64_t(index + 1)) : "", v = chunks.var->name;
    // Chunks are counted in int; where their number is multiplied, it may have to be wider.
    const bool shifted = !is_const(chunks.begin, 0) || wide_;
    const ParallelPart& own = part_of(k_.parts, chunks);
    Uses used;
    used.add(chunks.body);
    used.add(chunks.begin);
    for (const Stmt& s : own.around) used.add_head(s);
    std::vector<std::string> params, values;
    for (const Param& p : k_.params)
      if (p.role == Param::Role::Status ? used.status : used.buffers.count(p.buffer.get()) != 0) {
        params.push_back(parameter(p, is_restricted(p)));
        values.push_back("args->" + name_of(p));
      }
    for (const Var& c : own.counters) {
      params.push_back(counter_type() + c->name);
      values.push_back("args->" + c->name);
    }
    params.push_back("int " + (shifted ? std::string("chunk") : v));
    values.push_back("chunk");
    out_.line("static void " + full_ + "_chunk" + number + "(" + arguments(params) + ")");
    open();
    if (shifted)
      out_.line("const " + counter_type() + v + " = chunk" +
                (is_const(chunks.begin, 0) ? "" : " + " + ExprPrinter(text_.needs).index(chunks.begin)) + ";");
    chunk_body(chunks, own);
    close();
    out_.blank();
    out_.line("static void " + full_ + "_part" + number + "(const void *arguments, int chunk)");
    open();
    out_.line("const " + full_ + "_arguments *const args = (const " + full_ + "_arguments *)arguments;");
    out_.line(full_ + "_chunk" + number + "(" + join(values, ", ") + ");");
    close();
    out_.blank();
  }

  void chunk_body(const For& chunks, const ParallelPart& own) {
    StmtPrinter body(out_, text_.needs, k_);
    // Constness is decided by what this part does with a view, and with views of it.
    Stmt inside = chunks.body;
    std::vector<Stmt> around = own.around;
    for (size_t n = around.size(); n-- > 0; inside = around[n]) {
      const Let* l = as<Let>(around[n]);
      const Alias* a = as<Alias>(around[n]);
      around[n] = l ? let(l->var, l->value, inside) : alias(a->view, a->base, a->offset, inside);
    }
    for (const Stmt& s : around) {
      if (const Let* k = as<Let>(s)) body.declare(*k);
      if (const Alias* k = as<Alias>(s)) body.declare(*k);
    }
    body.print(chunks.body);
  }

  const Kernel& k_;
  std::string full_;
  bool wide_;
  SourceWriter out_;
  KernelText text_;
};

}  // namespace

void print_head_comment(SourceWriter& out, const Kernel& k, const std::string& target) {
  std::string text;
  size_t from = 0;
  bool first = true;
  auto line = [&](const std::string& s) {
    out.line((first ? "/* " : " * ") + s);
    first = false;
  };
  for (size_t at; (at = k.formula.find('\n', from)) != std::string::npos; from = at + 1)
    line(k.formula.substr(from, at - from));
  if (from < k.formula.size()) line(k.formula.substr(from));
  if (!k.summary.empty()) {
    if (!first) out.line(" *");
    line(k.summary);
  }
  size_t name_width = 0, dims_width = 0;
  for (const Param& p : k.params) {
    if (p.role == Param::Role::Scratch || p.role == Param::Role::Status || p.role == Param::Role::Strings) continue;
    name_width = std::max(name_width, p.buffer->name.size());
    dims_width = std::max(dims_width, shape_text(p.dims).size());
  }
  for (const Param& p : k.params) {
    if (p.role == Param::Role::Scratch || p.role == Param::Role::Status || p.role == Param::Role::Strings) continue;
    std::string s = "  " + p.buffer->name + std::string(name_width - p.buffer->name.size() + 2, ' ');
    const std::string dims = shape_text(p.dims);
    const std::string type = p.buffer->dtype == DType::F32 ? "" : std::string(info(p.buffer->dtype).name);
    const std::string description = type.empty() || p.layout.empty() ? type + p.layout : type + ", " + p.layout;
    s += description.empty() ? dims : dims + std::string(dims_width - dims.size() + 3, ' ') + description;
    line(s);
  }
  out.line(" * Schedule (" + target + "): " + k.schedule + " */");
}

KernelText print_kernel(const Kernel& k, const std::string& prefix, const std::string& cpu) {
  return KernelPrinter(k, prefix).print(cpu);
}

std::string include_lines(const Needs& n, const std::string& dir) {
  std::string s;
  if (n.parallel) s += "#include \"" + dir + "tc_parallel.h\"\n";
  if (n.runtime) s += "#include \"" + dir + "tc_rt.h\"\n";
  if (n.scalar) s += "#include \"" + dir + "tc_scalar.h\"\n";
  if (n.halves) s += "#include \"" + dir + "tc_half.h\"\n";
  if (n.doubles) s += "#include \"" + dir + "tc_double.h\"\n";
  if (n.ints) s += "#include \"" + dir + "tc_int.h\"\n";
  if (n.few_bits) s += "#include \"" + dir + "tc_bits.h\"\n";
  if (n.byte_tiles) s += "#include \"" + dir + "tc_tiles.h\"\n";
  if (n.tails) s += "#include \"" + dir + "tc_tail.h\"\n";
  if (n.transposes) s += "#include \"" + dir + "tc_transpose.h\"\n";
  if (n.vector_math) s += "#include \"" + dir + "tc_math.h\"\n";
  if (n.letters) s += "#include \"" + dir + "tc_case.h\"\n";
  if (n.strings) s += "#include \"" + dir + "tc_string.h\"\n";
  if (n.types) s += "#include \"" + dir + "tc_types.h\"\n";
  if (n.math) s += "#include <math.h>\n";
  return s;
}

std::string static_kernel(const KernelText& t) { return t.before + "static " + t.function; }

}  // namespace tc
