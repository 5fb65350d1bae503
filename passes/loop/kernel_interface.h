// The parameters of a kernel: which memory the scheduled loops read and write, under unique names.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "ir/loop/visit.h"
#include "ir/program.h"
#include "passes/schedule/schedule.h"

namespace tc {

class KernelInterface {
 public:
  explicit KernelInterface(const Scheduled& s);

  /// The schedule's body over the named parameters, its scratch buffers allocated around it.
  const Stmt& body() const { return body_; }
  const std::set<std::string>& names() const { return taken_; }
  /// A tensor of which only the first elements along an axis are needed, as many as `end` says, and the buffers that
  /// stand for its memory in the body.
  struct Live {
    std::vector<Buffer> memory;
    Dims dims;
    int axis = 0;
    Expr end;  // over loads of `sizes`
    std::vector<Scheduled::ChosenSize> sizes;
    bool on_host = false;  // the host knows the sizes: Param::by_value
  };
  std::vector<Live> live() const;
  /// The parameters' buffers, in order.
  std::vector<Buffer> buffers() const;
  /// These and the views of their memory: what is free in the body.
  std::vector<Buffer> visible() const;
  /// Scratch memory of the host's part gets names of its own, which functions of the device take over; `flat` learns them.
  Stmt name_views(const Stmt& s, BufferMap& flat);

  /// After flatten_buffers has filled `flat`: every parameter and its views become one flat buffer, the parameter. What
  /// is returned replaces the others in the body.
  BufferMap flatten(const BufferMap& flat);

  /// Sets k.params (with scratch, if not null, and a status word if k.can_fail) and the schedule's description.
  void finish(Kernel& k, const Buffer& scratch) const;

 private:
  void add(Param::Role role, const Buffer& b, std::string layout);
  std::string take(const std::string& hint);

  const Scheduled& s_;
  Stmt body_;
  std::vector<Param> params_;
  BufferMap renamed_, view_of_;
  std::set<std::string> taken_{"status", "scratch", "arguments", "args", "chunk", "stream"};
};

/// Does the statement raise the status word?
bool raises_status(const Stmt& s);
/// Does anything in it make a string?
bool makes_strings(const Stmt& s);

}  // namespace tc
