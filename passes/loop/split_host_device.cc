// split_host_device: every nest of block and thread loops becomes a function of the device.
//
//   alias t = &scratch[0]                          host:    alias t = &scratch[0]
//   block.x b in 0 .. +8:                                   launch kernel<<<8, 256>>>(x, t)
//     thread.x i in 0 .. +256: t[..] = x[..]  ->            launch kernel2<<<1, 1>>>(t, y)
//   y[0] = t[0]                                    kernel:  block.x b .. thread.x i: t[..] = x[..]
//                                                  kernel2: y[0] = t[0]
//
// A serial loop around nests stays on the host: each of its iterations launches, and passes its number on. What else
// stands outside of a nest runs in a single thread; neighbours of that kind share a function. The parameters of
// a function are the buffers that are free in its body: those of the kernel in their order, then scratch memory in order
// of appearance.
#include "passes/loop/split_host_device.h"

#include <algorithm>
#include <set>

#include "ir/loop/build.h"
#include "ir/loop/named_buffers.h"
#include "ir/loop/visit.h"
#include "passes/analysis/nest.h"
#include "support/text.h"

namespace tc {
namespace {

// A nest of block and thread loops. Where there is one block only, its shared memory is outermost.
bool is_nest(const Stmt& s) {
  if (const Alloc* a = as<Alloc>(s)) return is_nest(a->body);
  if (const Comment* c = as<Comment>(s)) return is_nest(c->body);
  const For* f = as<For>(s);
  return f && is_gpu(f->kind);
}

// The buffers that are free in a statement.
class FreeBuffers {
 public:
  explicit FreeBuffers(const Stmt& s) {
    walk(
        s,
        [&](const Stmt& x) {
          if (const Alloc* k = as<Alloc>(x)) bound_.insert(k->buffer.get());
          if (const Alias* k = as<Alias>(x)) bound_.insert(k->view.get());
          for (const Buffer& b : named_buffers(x)) add(b);
          return true;
        },
        [&](const Expr& e) {
          if (const Load* l = as<Load>(e)) add(l->buffer);
          return true;
        });
  }
  /// Those of `first` in their order, then the others.
  std::vector<Buffer> list(const std::vector<Buffer>& first) const {
    std::vector<Buffer> free;
    std::set<const BufferDef*> listed = bound_;
    for (const Buffer& b : first)
      if (known_.count(b.get()) != 0 && listed.insert(b.get()).second) free.push_back(b);
    for (const Buffer& b : seen_)
      if (listed.insert(b.get()).second) free.push_back(b);
    return free;
  }

 private:
  void add(const Buffer& b) {
    if (known_.insert(b.get()).second) seen_.push_back(b);
  }
  std::vector<Buffer> seen_;
  std::set<const BufferDef*> known_, bound_;  // looked up only
};

class Splitter {
 public:
  Splitter(const std::vector<Buffer>& params, const GridSizes& grids) : params_(params), grids_(grids) {}
  std::vector<DeviceFunction> device;

  Stmt host(const Stmt& s) {
    if (!s) return s;
    if (const Alias* k = as<Alias>(s)) return alias(k->view, k->base, k->offset, host(k->body));
    if (const Comment* k = as<Comment>(s)) return comment(k->text, host(k->body));
    if (const Seq* k = as<Seq>(s)) return host_list(k->list);
    if (const For* k = as<For>(s); k && k->kind == ForKind::Serial && has_device_loops(s)) {
      host_loops_.push_back({k->var, k->begin, k->extent, k->kind, {}});
      const Stmt body = host(k->body);
      host_loops_.pop_back();
      return loop(k->var, k->extent, body, k->kind, k->begin);
    }
    return launch(s);
  }

 private:
  Stmt host_list(const Stmts& list) {
    Stmts out, single;
    auto flush = [&] {
      if (!single.empty()) out.push_back(launch(seq(std::move(single))));
      single.clear();
    };
    for (const Stmt& x : list) {
      if (!has_device_loops(x) && !as<Alias>(x) && !as<Comment>(x)) {
        single.push_back(x);
        continue;
      }
      flush();
      out.push_back(host(x));
    }
    flush();
    return seq(std::move(out));
  }

  // The host takes the views of scratch memory: a function gets them as parameters, as what lies outside of it.
  Stmt launch(const Stmt& s) {
    std::vector<Alias> views;
    Stmt code = launch_of(without_views(s, views));
    for (const Alias& k : views) code = alias(k.view, k.base, k.offset, code);
    return code;
  }

  // Inner ones come first.
  static Stmt without_views(const Stmt& s, std::vector<Alias>& views) {
    return rewrite(s, {}, [&](const Stmt& x) -> Stmt {
      const Alias* k = as<Alias>(x);
      if (!k || !as_const_int(k->offset)) return {};
      views.push_back(*k);
      return k->body;
    });
  }

  Stmt launch_of(const Stmt& s) {
    Launch l{"kernel" + (device.empty() ? std::string() : to_text(int64_t(device.size() + 1))),
             {1, 1, 1},
             {1, 1, 1},
             {},
             {}};
    int64_t threads = 1;
    bool legal = true;
    walk(s, [&](const Stmt& x) {
      const For* f = as<For>(x);
      if (!f || !is_gpu(f->kind)) return true;
      const bool thread = is_thread(f->kind);
      Exprs& sizes = thread ? l.block : l.grid;
      const auto n = as_const_int(f->extent);
      Expr& size = sizes[size_t(f->kind) - size_t(thread ? ForKind::ThreadX : ForKind::BlockX)];
      legal = legal && n && is_const(f->begin, 0) && is_const(size, 1);
      const auto needed = thread ? grids_.end() : grids_.find(f->var.get());
      size = needed == grids_.end() ? f->extent : needed->second;
      if (thread && n) threads *= *n;
      return true;
    });
    check(legal, "a launch is one nest of block and thread loops of constant sizes");
    check(!has_device_loops(s) || is_nest(s), "the loops of blocks and threads are outermost");
    l.buffers = FreeBuffers(s).list(params_);
    DeviceFunction f;
    f.name = l.kernel;
    f.params = l.buffers;
    for (const For& t : host_loops_)
      if (uses_var(s, t.var)) {
        l.args.emplace_back(t.var);
        f.host_loops.push_back(t);
      }
    f.body = s;
    f.threads = threads;
    device.push_back(std::move(f));
    return Stmt(std::make_shared<const StmtNode>(StmtNode{l}));
  }

  const std::vector<Buffer>& params_;
  const GridSizes& grids_;
  std::vector<For> host_loops_;  // around the statement
};

}  // namespace

SplitFunction split_host_device(const Stmt& s, const std::vector<Buffer>& params, const GridSizes& grids) {
  Splitter splitter(params, grids);
  const Stmt host = splitter.host(s);
  return {host, std::move(splitter.device)};
}

namespace {

template <class T>
void keep(std::vector<T>& list, const std::vector<bool>& kept) {
  std::vector<T> left;
  for (size_t i = 0; i < list.size(); ++i)
    if (kept.at(i)) left.push_back(list[i]);
  list = std::move(left);
}

}  // namespace

void drop_unread_params(SplitFunction& split) {
  for (DeviceFunction& f : split.device) {
    const std::vector<Buffer> read = FreeBuffers(f.body).list({});
    std::vector<bool> buffers, loops;
    for (const Buffer& b : f.params) buffers.push_back(std::find(read.begin(), read.end(), b) != read.end());
    for (const For& t : f.host_loops) loops.push_back(uses_var(f.body, t.var));
    keep(f.params, buffers);
    keep(f.host_loops, loops);
    split.host = rewrite(split.host, {}, [&](const Stmt& s) -> Stmt {
      const Launch* found = as<Launch>(s);
      if (!found || found->kernel != f.name) return {};
      Launch l = *found;
      keep(l.buffers, buffers);
      keep(l.args, loops);
      return Stmt(std::make_shared<const StmtNode>(StmtNode{std::move(l)}));
    });
  }
}

}  // namespace tc
