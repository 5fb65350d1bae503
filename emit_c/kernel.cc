#include "emit_c/kernel.h"

#include "emit_c/stmt.h"
#include "ir/loop/visit.h"
#include "support/text.h"

namespace tc {
namespace {

bool is_written(Param::Role r) { return r == Param::Role::Output || r == Param::Role::Scratch; }

std::string parameter(const Param& p, bool restricted) {
  if (p.role == Param::Role::Status) return "int32_t *status";
  if (p.role == Param::Role::Scratch) return "unsigned char *scratch";
  const std::string type = (is_written(p.role) ? "" : "const ") + std::string(info(p.buffer->dtype).c_type) + " *";
  return type + (restricted ? "TC_RESTRICT " : "") + p.buffer->name;
}

std::string brackets(const Dims& dims) {
  std::string s;
  for (const int64_t d : dims) s += "[" + to_text(d) + "]";
  return s.empty() ? "scalar" : s;
}

// The head comment: formula, what it computes, shapes and layouts, schedule.
void head_comment(SourceWriter& out, const Kernel& k, const std::string& cpu) {
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
    if (p.role == Param::Role::Scratch || p.role == Param::Role::Status) continue;
    name_width = std::max(name_width, p.buffer->name.size());
    dims_width = std::max(dims_width, brackets(p.dims).size());
  }
  for (const Param& p : k.params) {
    if (p.role == Param::Role::Scratch || p.role == Param::Role::Status) continue;
    std::string s = "  " + p.buffer->name + std::string(name_width - p.buffer->name.size() + 2, ' ');
    const std::string dims = brackets(p.dims);
    const std::string type = p.buffer->dtype == DType::F32 ? "" : std::string(info(p.buffer->dtype).name);
    const std::string words = type.empty() || p.layout.empty() ? type + p.layout : type + ", " + p.layout;
    s += words.empty() ? dims : dims + std::string(dims_width - dims.size() + 3, ' ') + words;
    line(s);
  }
  out.line(" * Schedule (" + cpu + "): " + k.schedule + " */");
}

// The status word has no accesses of its own: Index raises it.
bool uses(const Stmt& s, const Buffer& b) {
  bool found = b->name == "status";
  walk(
      s,
      [&](const Stmt& x) {
        if (auto* k = as<Store>(x)) found |= k->buffer == b;
        if (auto* k = as<Alias>(x)) found |= k->base == b;
        if (auto* k = as<Prefetch>(x)) found |= k->buffer == b;
        return !found;
      },
      [&](const Expr& e) {
        if (auto* l = as<Load>(e)) found |= l->buffer == b;
        return !found;
      });
  return found;
}

std::string arguments(const std::vector<std::string>& list) { return list.empty() ? "void" : join(list, ", "); }

}  // namespace

KernelText print_kernel(const Kernel& k, const std::string& prefix, const std::string& cpu) {
  KernelText t;
  const std::string full = prefix + "_" + k.name;
  std::vector<std::string> params;
  bool wide = false;
  for (const Param& p : k.params) {
    params.push_back(parameter(p, p.role != Param::Role::Status && p.role != Param::Role::Scratch));
    wide = wide || num_elements(p.dims) > INT32_MAX / 2;
  }
  t.prototype = "void " + full + "(" + arguments(params) + ")";

  SourceWriter inner;  // the function's own body
  inner.indent();
  StmtPrinter printer(inner, t.needs, wide);
  printer.part_call = "TC_PARALLEL_FOR(" + full + "_{part}, &arguments, {chunks});";
  for (const Param& p : k.params)
    if (!uses(k.body, p.buffer)) inner.line("(void)" + p.buffer->name + ";");  // of a result without elements
  printer.print(k.body);

  SourceWriter out;
  head_comment(out, k, cpu);
  if (!printer.parts.empty()) {
    out.line("typedef struct {");
    out.indent();
    for (const Param& p : k.params) out.line(parameter(p, false) + ";");
    out.dedent();
    out.line("} " + full + "_arguments;");
    out.blank();
  }
  for (size_t i = 0; i < printer.parts.size(); i++) {
    const Part& part = printer.parts[i];
    const std::string name = full + "_part" + (i > 0 ? to_text(int64_t(i + 1)) : "");
    const std::string v = part.loop.var->name;
    const bool shifted = as<IntImm>(part.loop.begin) == nullptr || as<IntImm>(part.loop.begin)->value != 0;
    out.line("static void " + name + "(const void *arguments, int " + (shifted ? "chunk" : v) + ")");
    out.line("{");
    out.indent();
    out.line("const " + full + "_arguments *const args = (const " + full + "_arguments *)arguments;");
    SourceWriter text;
    text.indent();
    StmtPrinter body(text, t.needs, wide);
    body.part_call = "nested";
    Stmt s = part.loop.body;
    std::set<const BufferDef*> used;  // looked up only
    auto use = [&](const Buffer& b) { used.insert(b.get()); };
    auto collect = [&](const Stmt& root) {
      walk(
          root,
          [&](const Stmt& x) {
            if (const Store* st = as<Store>(x)) use(st->buffer);
            if (const Alias* al = as<Alias>(x)) use(al->base);
            if (const Prefetch* pf = as<Prefetch>(x)) use(pf->buffer);
            return true;
          },
          [&](const Expr& e) {
            if (const Load* l = as<Load>(e)) use(l->buffer);
            return true;
          });
    };
    collect(s);
    std::vector<const Stmt*> around;
    for (size_t n = part.around.size(); n > 0; n--) {
      const Alias* al = as<Alias>(part.around[n - 1]);
      if (al && used.count(al->view.get()) == 0) continue;
      if (al) use(al->base);
      if (const Let* l = as<Let>(part.around[n - 1])) {
        bool wanted = uses_var(s, l->var);
        for (const Stmt* w : around)
          if (const Alias* wa = as<Alias>(*w)) wanted = wanted || uses_var(wa->offset, l->var);
        if (!wanted) continue;
      }
      around.insert(around.begin(), &part.around[n - 1]);
    }
    for (const Param& p : k.params) {
      const bool status = p.role == Param::Role::Status;
      if (!status && used.count(p.buffer.get()) == 0) continue;
      if (status && !k.can_fail) continue;
      out.line(parameter(p, !status && p.role != Param::Role::Scratch) + " = args->" +
               (status                           ? "status"
                : p.role == Param::Role::Scratch ? "scratch"
                                                 : p.buffer->name) +
               ";");
    }
    if (shifted) out.line("const int " + v + " = chunk + " + ExprPrinter(t.needs).index(part.loop.begin) + ";");
    for (const Stmt* w : around) {
      if (const Alias* al = as<Alias>(*w)) {
        Alias narrowed = *al;
        narrowed.body = s;
        StmtPrinter(out, t.needs, wide).declare(narrowed);
      }
      if (const Let* l = as<Let>(*w)) StmtPrinter(out, t.needs, wide).declare(*l);
    }
    body.enter_loop();
    body.print(s);
    out.raw_block(text.text());
    out.dedent();
    out.line("}");
    out.blank();
  }
  out.line(t.prototype);
  out.line("{");
  out.indent();
  if (!printer.parts.empty()) {
    std::vector<std::string> names;
    for (const Param& p : k.params)
      names.push_back(p.role == Param::Role::Status    ? "status"
                      : p.role == Param::Role::Scratch ? "scratch"
                                                       : p.buffer->name);
    out.line("const " + full + "_arguments arguments = {" + join(names, ", ") + "};");
  }
  out.raw_block(inner.text());
  out.dedent();
  out.line("}");
  t.body = out.take();
  return t;
}

std::string include_lines(const Needs& n, const std::string& dir) {
  std::string s;
  if (n.parallel) s += "#include \"" + dir + "tc_parallel.h\"\n";
  if (n.runtime) s += "#include \"" + dir + "tc_rt.h\"\n";
  if (n.scalar) s += "#include \"" + dir + "tc_scalar.h\"\n";
  if (n.tails) s += "#include \"" + dir + "tc_tail.h\"\n";
  if (n.vector_math) s += "#include \"" + dir + "tc_math.h\"\n";
  if (n.types) s += "#include \"" + dir + "tc_types.h\"\n";
  if (n.math) s += "#include <math.h>\n";
  return s;
}

std::string kernel_file(const KernelText& t, const std::string& prefix) {
  return std::string(kLicenseLine) + "\n#include \"../" + prefix + "_kernels.h\"\n" + include_lines(t.needs, "../") +
         "\n" + t.body;
}

}  // namespace tc
