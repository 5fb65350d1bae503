// The part of the reader of modules that makes graphs.
#pragma once
#include <map>
#include <set>

#include "ir/language/elements_text.h"
#include "ir/language/graph_text.h"
#include "ir/language/user_ops.h"

namespace tc::language {

/// Reads graphs statement by statement, and goes on behind a mistake at the next line.
class GraphReader {
 public:
  GraphReader(TokenReader& r, Problems& problems, const DataReader& data, const std::vector<OwnRow>& rows)
      : r_(r), problems_(problems), data_(data), rows_(rows) {}

  /// From the word `graph` to the closing brace.
  Graph graph(int depth = 0);

 private:
  /// What a name means in the graph that is read.
  struct Scope {
    Graph g;
    std::map<std::pair<std::string, int64_t>, Value*> values;
    std::set<std::pair<std::string, int64_t>> lost;  // defined on lines with mistakes, which are told already
    Node* last = nullptr;                            // to which a function or a region belongs
  };
  struct Reference {
    Place at;
    std::pair<std::string, int64_t> name;
    bool absent = false;  // "_"
  };
  struct Definition {
    Reference value;
    ValueType type;
  };

  // names
  Reference reference();
  void definition(Definition& d);  // its name stays where the type is wrong
  Value* value(Scope& s, const Reference& ref);
  void define(Scope& s, const Definition& d, Value* v);

  // parts of a graph
  void header(Scope& s, RunTimeSizes& sizes);
  void input(Scope& s, RunTimeSizes& sizes);
  void check_inputs(const Graph& g, const RunTimeSizes& sizes);
  std::vector<Reference> outputs(RunTimeSizes& sizes);
  void check_sum(const OutputSize& size, const RunTimeSizes& sizes, const Place& at);
  void set_outputs(Scope& s, const std::vector<Reference>& names, RunTimeSizes sizes);
  struct Counted {
    Place at;
    int axis = 0;
    bool of_input = false;
    size_t by = 0;
    SizeSum sum;  // of an input
  };
  Counted counted();
  SizeSum sum();
  void kept(RunTimeSizes& sizes, size_t number);
  void range(const Definition& d, RunTimeSizes& sizes, size_t number);
  void statement(Scope& s, int depth);
  void defining_line(Scope& s);
  void constant_line(Scope& s, const Definition& d);
  void node_line(Scope& s, const std::vector<Definition>& results);
  void function(Scope& s);
  void skip_line(Scope& s, size_t begin);

  // parts of a node
  std::pair<std::string, std::string> op();
  Attrs attributes();
  Attr attribute();
  Attr list(const std::string& kind);
  Constant constant(const ValueType* type);
  Constant elements(DType t, const Dims& dims);
  Constant data(DType t, const Dims& dims);
  void names(Node& n);
  void check_op(const Place& at, Node& n) const;

  TokenReader& r_;
  Problems& problems_;
  const DataReader& data_;
  const std::vector<OwnRow>& rows_;
  std::map<int64_t, Constant> shared_;  // @1
};

}  // namespace tc::language
