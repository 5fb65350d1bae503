#include "ir/loop/print.h"

#include <map>
#include <set>

#include "support/text.h"

namespace tc {
namespace {

// Gives free and bound names one spelling each, in order of appearance.
class Printer {
 public:
  std::string expr(const Expr& e, int parent = 0) {
    if (!e) return "null";
    return visit(
        e, [&](const IntImm& k) { return integer(e->dtype, k.value); },
        [&](const FloatImm& k) { return e->dtype == DType::F32 ? c_literal(float(k.value)) : c_literal(k.value); },
        [&](const VarRef& k) { return name(k.var.get(), k.var->name); },
        [&](const Lanes&) { return std::string("VL"); }, [&](const Apply& k) { return application(k, parent); },
        [&](const Select& k) {
          return "select(" + list({k.condition, k.yes, k.no}) + ")";
        },
        [&](const Cast& k) {
          return std::string(info(e->dtype).name) + "(" + expr(k.value) + (k.saturate ? ")" : ", wrap)");
        },
        [&](const Bitcast& k) { return "bits_" + std::string(info(e->dtype).name) + "(" + expr(k.value) + ")"; },
        [&](const Load& k) { return name(k.buffer.get(), k.buffer->name) + "[" + list(k.index) + "]"; },
        [&](const Ramp& k) { return expr(k.base, 13) + ":VL"; },
        [&](const Broadcast& k) { return "all(" + expr(k.value) + ")"; },
        [&](const Partial& k) { return "first(" + expr(k.count) + ", " + expr(k.value) + ")"; });
  }

  void stmt(const Stmt& s, int indent) {
    if (!s) return line(indent, "nothing");
    visit(s, [&](const auto& k) { print(k, indent); });
  }

  std::string text;
  std::map<const void*, std::string> names;  // of variables and buffers

 private:
  void print(const Store& k, int indent) {
    const std::string target = name(k.buffer.get(), k.buffer->name) + "[" + list(k.index) + "]";
    const std::string count = k.count ? "  (first " + expr(k.count) + ")" : "";
    const std::string op = !k.reduce                         ? " = "
                           : info(*k.reduce).c_infix.empty() ? " " + std::string(info(*k.reduce).name) + "= "
                                                             : " " + std::string(info(*k.reduce).c_infix) + "= ";
    line(indent, target + op + expr(k.value) + count);
  }
  void print(const For& k, int indent) {
    const std::string from = expr(k.begin), n = expr(k.extent);
    line(indent, std::string(k.kind == ForKind::Serial ? "for" : kind_name(k.kind)) + " " +
                     name(k.var.get(), k.var->name) + " in " + from + " .. +" + n + ":");
    stmt(k.body, indent + 1);
  }
  void print(const While& k, int indent) {
    line(indent, "while " + expr(k.condition) + ":");
    stmt(k.body, indent + 1);
  }
  void print(const If& k, int indent) {
    line(indent, "if " + expr(k.condition) + ":");
    stmt(k.then, indent + 1);
    if (k.otherwise) {
      line(indent, "else:");
      stmt(k.otherwise, indent + 1);
    }
  }
  void print(const Let& k, int indent) {
    const std::string v = expr(k.value);
    line(indent, "let " + name(k.var.get(), k.var->name) + " = " + v);
    stmt(k.body, indent);
  }
  void print(const Alloc& k, int indent) {
    line(indent, "alloc " + name(k.buffer.get(), k.buffer->name) + ": " +
                     to_text(ValueType::tensor(k.buffer->dtype, k.buffer->shape)) + " " + scope_name(k.buffer->scope));
    stmt(k.body, indent);
  }
  void print(const Alias& k, int indent) {
    const std::string base = name(k.base.get(), k.base->name) + "[" + expr(k.offset) + "]";
    line(indent,
         "alias " + name(k.view.get(), k.view->name) + ": " + std::string(info(k.view->dtype).name) + " = &" + base);
    stmt(k.body, indent);
  }
  void print(const Seq& k, int indent) {
    for (const Stmt& x : k.list) stmt(x, indent);
  }
  void print(const Barrier& k, int indent) { line(indent, "barrier " + scope_name(k.scope)); }
  void print(const Prefetch& k, int indent) {
    line(indent, "prefetch " + name(k.buffer.get(), k.buffer->name) + "[" + list(k.index) + "]" +
                     (k.level > 1    ? " to level " + to_text(k.level)
                      : k.level == 0 ? " to be written"
                                     : ""));
  }
  void print(const Intrin& k, int indent) {
    std::string s = k.name + "(" + list(k.args);
    for (const Buffer& b : k.buffers) s += ", " + name(b.get(), b->name);
    line(indent, s + ")");
  }
  void print(const Launch& k, int indent) {
    std::string s = "launch " + k.kernel + "<" + list(k.grid) + "><" + list(k.block) + ">(";
    for (const Buffer& b : k.buffers) s += name(b.get(), b->name) + " ";
    line(indent, s + list(k.args) + ")");
  }
  void print(const Comment& k, int indent) {
    line(indent, "# " + k.text);
    if (k.body) stmt(k.body, indent);
  }

  static std::string integer(DType t, int64_t v) {
    if (t == DType::I64) return to_text(v);
    if (t == DType::Bool) return v != 0 ? "true" : "false";
    return std::string(info(t).name) + "(" + to_text(v) + ")";
  }

  std::string name(const void* id, const std::string& hint) {
    if (const auto it = names.find(id); it != names.end()) return it->second;
    std::string n = hint;
    for (int k = 2; taken_.count(n) != 0; k++) n = hint + "_" + to_text(int64_t(k));
    taken_.insert(n);
    return names[id] = n;
  }

  std::string list(const Exprs& l) {
    std::string s;
    for (size_t i = 0; i < l.size(); i++) s += (i > 0 ? ", " : "") + expr(l[i]);
    return s;
  }

  std::string application(const Apply& k, int parent) {
    const OpInfo& row = info(k.op);
    if (row.c_infix.empty()) return std::string(row.name) + "(" + list(k.args) + ")";
    std::string s;
    if (row.arity == 1)
      s = std::string(row.c_infix) + expr(k.args[0], row.precedence);
    else
      s = expr(k.args[0], row.precedence) + " " + std::string(row.c_infix) + " " + expr(k.args[1], row.precedence + 1);
    return row.precedence < parent ? "(" + s + ")" : s;
  }

  void line(int indent, const std::string& s) { text += std::string(size_t(indent) * 2, ' ') + s + "\n"; }

  std::set<std::string> taken_;
};

}  // namespace

std::string scope_name(Scope s) {
  static constexpr const char* kNames[] = {"global", "workspace", "stack", "register", "shared", "warp", "fragment"};
  return kNames[size_t(s)];
}

std::string_view kind_name(ForKind k) {
  switch (k) {
    case ForKind::Serial: return "serial";
    case ForKind::Parallel: return "parallel";
    case ForKind::Unroll: return "unroll";
    case ForKind::Vector: return "vector";
    case ForKind::Fragment: return "fragment";
    case ForKind::BlockX: return "block.x";
    case ForKind::BlockY: return "block.y";
    case ForKind::BlockZ: return "block.z";
    case ForKind::ThreadX: return "thread.x";
    case ForKind::ThreadY: return "thread.y";
    case ForKind::ThreadZ: return "thread.z";
  }
  return "?";
}

std::string to_text(const Expr& e) { return Printer().expr(e); }

std::string to_text(const Stmt& s, int indent) {
  Printer p;
  p.stmt(s, indent);
  return p.text;
}

std::map<const void*, std::string> printed_names(const Stmt& s) {
  Printer p;
  p.stmt(s, 0);
  return std::move(p.names);
}

}  // namespace tc
