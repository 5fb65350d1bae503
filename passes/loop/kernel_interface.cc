#include "passes/loop/kernel_interface.h"

#include "ir/loop/build.h"
#include "passes/loop/assign_names.h"
#include "support/text.h"

namespace tc {
namespace {

Buffer with_name(const Buffer& b, std::string name) {
  auto d = std::make_shared<BufferDef>(*b);
  d->name = std::move(name);
  return d;
}

// Of a part of another tensor: "strides 3072, 96, 1", of the axes that have several elements.
std::string strides_text(const BufferDef& b) {
  std::vector<std::string> list;
  for (size_t d = 0; d < b.strides.size(); d++)
    if (b.shape[d] != Dim(1)) list.push_back(to_text(b.strides[d]));
  return "strides " + join(list, ", ");
}

bool applies(const Stmt& s, bool (*wanted)(Op)) {
  bool found = false;
  walk(
      s, [&](const Stmt&) { return !found; },
      [&](const Expr& e) {
        const Apply* k = as<Apply>(e);
        found |= k && wanted(k->op);
        return !found;
      });
  return found;
}

}  // namespace

bool raises_status(const Stmt& s) {
  return applies(s, [](Op op) { return op == Op::Index; });
}

bool makes_strings(const Stmt& s) { return applies(s, makes_string); }

std::string KernelInterface::take(const std::string& hint) {
  const std::string base = value_name(hint);
  std::string n = base;
  for (int64_t k = 2; taken_.count(n) != 0; k++) n = base + to_text(k);
  taken_.insert(n);
  return n;
}

void KernelInterface::add(Param::Role role, const Buffer& b, std::string layout) {
  if (renamed_.count(b.get()) != 0) return;
  if (!b->strides.empty()) layout = join({layout, strides_text(*b)}, layout.empty() ? "" : ", ");
  const Buffer n = with_name(b, take(b->name));
  renamed_[b.get()] = n;
  params_.push_back({role, n, static_dims(b->shape), std::move(layout)});
}

KernelInterface::KernelInterface(const Scheduled& s) : s_(s) {
  for (const Buffer& b : s.inputs) add(Param::Role::Input, b, "");
  for (size_t i = 0; i < s.prologue.outputs.size(); i++)
    add(Param::Role::Weight, s.prologue.outputs[i], i < s.prologue_layouts.size() ? s.prologue_layouts[i] : "");
  for (const Buffer& b : s.outputs) add(Param::Role::Output, b, s.replaced.empty() ? "" : "in place of " + s.replaced);
  // A view is a flat buffer that stands for a parameter's memory.
  for (const auto& [view, original] : s.views) {
    const auto it = renamed_.find(original.get());
    check(it != renamed_.end(), "a view of a parameter");
    view_of_[it->second.get()] = renamed_[view.get()] = with_name(view, it->second->name);
  }
  body_ = substitute_buffers(s.body, renamed_);
  for (size_t i = s.scratch.size(); i > 0; i--) body_ = alloc(s.scratch[i - 1], body_);
}

std::vector<KernelInterface::Live> KernelInterface::live() const {
  std::vector<Live> list;
  for (const Scheduled::Live& l : s_.live) {
    const Buffer parameter = renamed_.at(l.output.get());
    Live here{{parameter}, static_dims(l.output->shape), l.axis, substitute_buffers(l.end, renamed_), l.sizes,
              l.on_host};
    for (Scheduled::ChosenSize& size : here.sizes) size.buffer = renamed_.at(size.buffer.get());
    if (const auto view = view_of_.find(parameter.get()); view != view_of_.end()) here.memory.push_back(view->second);
    list.push_back(std::move(here));
  }
  return list;
}

std::vector<Buffer> KernelInterface::buffers() const {
  std::vector<Buffer> list;
  for (const Param& p : params_) list.push_back(p.buffer);
  return list;
}

std::vector<Buffer> KernelInterface::visible() const {
  std::vector<Buffer> list = buffers();
  for (const Param& p : params_)
    if (const auto view = view_of_.find(p.buffer.get()); view != view_of_.end()) list.push_back(view->second);
  return list;
}

Stmt KernelInterface::name_views(const Stmt& s, BufferMap& flat) {
  if (const Alias* k = as<Alias>(s)) {
    const Buffer view = with_name(k->view, take(k->view->name));
    flat[view.get()] = view;
    return alias(view, k->base, k->offset, name_views(substitute_buffers(k->body, {{k->view.get(), view}}), flat));
  }
  if (const Comment* k = as<Comment>(s)) return comment(k->text, name_views(k->body, flat));
  if (const For* k = as<For>(s); k && k->kind == ForKind::Serial) {  // around launches, or a thread's
    const Var v = make_var(take(k->var->name), k->var->dtype);
    return loop(v, k->extent, name_views(substitute(k->body, {{k->var.get(), Expr(v)}}), flat), k->kind, k->begin);
  }
  const Seq* k = as<Seq>(s);
  if (!k)  // a thread's: the host takes what views of fixed places are inside
    return rewrite(s, {}, [&](const Stmt& x) -> Stmt {
      const Alias* a = as<Alias>(x);
      if (!a || !as_const_int(a->offset)) return {};
      const Buffer view = with_name(a->view, take(a->view->name));
      flat[view.get()] = view;
      return alias(view, a->base, a->offset, substitute_buffers(a->body, {{a->view.get(), view}}));
    });
  Stmts list;
  for (const Stmt& x : k->list) list.push_back(name_views(x, flat));
  return seq(std::move(list));
}

BufferMap KernelInterface::flatten(const BufferMap& flat) {
  BufferMap merged;
  for (Param& p : params_) {
    const auto direct = flat.find(p.buffer.get());
    const auto view = view_of_.find(p.buffer.get());
    const auto viewed = view == view_of_.end() ? flat.end() : flat.find(view->second.get());
    if (direct != flat.end() && viewed != flat.end()) merged[viewed->second.get()] = direct->second;
    if (direct != flat.end())
      p.buffer = direct->second;
    else if (viewed != flat.end())
      p.buffer = viewed->second;
  }
  return merged;
}

void KernelInterface::finish(Kernel& k, const Buffer& scratch) const {
  k.params = params_;
  if (scratch) k.params.push_back({Param::Role::Scratch, scratch, {}, ""});
  if (k.can_fail) k.params.push_back({Param::Role::Status, make_buffer("status", DType::I32, {1}), {}, ""});
  if (k.makes_strings) k.params.push_back({Param::Role::Strings, make_buffer("made", DType::U8, {1}), {}, ""});
  k.schedule = s_.description;
  k.schedule_steps = s_.steps;
}

}  // namespace tc
