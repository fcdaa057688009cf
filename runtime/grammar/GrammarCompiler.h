//===- GrammarCompiler.h - expressions to automata --------------*- C++ -*-===//
//
// 1. Rules are measured; those of short texts are put where they are called.
// 2. Each becomes a nondeterministic automaton (Thompson 1968) whose edges are byte ranges
//    and calls.
// 3. Which rules may be empty, and which call themselves before any byte.
// 4. Subset construction, calls being letters like bytes; a rule that would take too many
//    states keeps its nondeterministic form.
// 5. States that cannot reach an end go; the others learn how many calls that takes.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_GRAMMAR_GRAMMARCOMPILER_H
#define LLMC_RUNTIME_GRAMMAR_GRAMMARCOMPILER_H

#include "runtime/grammar/Grammar.h"
#include "runtime/grammar/GrammarBuilder.h"

#include <functional>
#include <map>
#include <optional>

namespace llmc {

class GrammarCompiler {
public:
  explicit GrammarCompiler(const GrammarBuilder &builder) : builder_(builder) {}
  std::shared_ptr<const Grammar> compile(Expression root);

private:
  using Node = GrammarBuilder::Node;
  using Kind = GrammarBuilder::Kind;
  static constexpr uint32_t kNone = UINT32_MAX;

  /// Of an expression: states, characters written out and bytes of the longest text; what is too large is kHuge.
  struct Measure {
    static constexpr uint64_t kHuge = uint64_t(1) << 40;
    uint64_t states = 0, expanded = 0, bytes = 0;
    uint32_t depth = 0;
  };
  struct Rule {
    std::string name;
    uint32_t body = kNone; // expression
    std::optional<Measure> measure;
    bool inlined = false;
    uint32_t start = kNone, end = kNone; // in nfa_
    size_t nodes = 0;
    bool nullable = false;
    uint32_t dfa = kNone, entry = kNone; // in states_
  };
  enum class Step : uint8_t { Split, Bytes, Call, End };
  struct NfaNode {
    Step step = Step::Split;
    uint8_t first = 0, last = 0;           // bytes
    uint32_t out = kNone, other = kNone;   // a split has two
    uint32_t rule = 0, least = 1, most = 1; // a call's
    uint32_t owner = 0;                     // the rule that it is part of
  };
  struct Fragment {
    uint32_t in, out; // out: a split without ways on
  };
  /// A state before all are known, and laid out.
  struct Draft {
    std::vector<Grammar::Edge> edges;
    std::vector<uint32_t> calls, jumps;
    bool end = false;
  };
  struct DraftCall {
    uint32_t rule, to, least, most;
  };

  uint32_t addRule(const std::string &name, uint32_t body);

  // GrammarMeasure.cpp
  void orderRules(uint32_t root);
  Measure measure(uint32_t expression);
  Measure measureRepeat(const Node &node);
  bool writtenOut(const Node &node);
  Measure measureCall(uint32_t rule) const;
  void rulesOf(uint32_t expression, std::vector<uint32_t> &out) const;

  // GrammarNfa.cpp
  void buildNfas();
  uint32_t newNode(NfaNode node);
  Fragment build(uint32_t expression);
  Fragment empty();
  Fragment join(Fragment a, Fragment b);
  Fragment callOf(uint32_t rule, uint32_t least, uint32_t most);
  Fragment buildLiteral(const std::string &bytes);
  Fragment buildCharacter(const CharacterSet &set);
  Fragment buildChoice(const Node &node);
  Fragment buildRepeat(const Node &node);
  Fragment buildList(const Node &node);
  Fragment either(const std::vector<Fragment> &ways);
  uint32_t bodyRule(uint32_t expression);
  void findNullable();
  void refuseLeftRecursion();

  // GrammarDfa.cpp
  void makeAutomata();
  bool makeDeterministic(Rule &rule);
  void keepNondeterministic(Rule &rule);
  std::vector<uint32_t> closure(const std::vector<uint32_t> &nodes);
  using StateOf = std::function<uint32_t(const std::vector<uint32_t> &)>;
  void splitBytes(const std::vector<uint32_t> &nodes, Draft &draft, const StateOf &stateOf);
  void splitCalls(const std::vector<uint32_t> &nodes, Draft &draft, const StateOf &stateOf);
  uint32_t draftCall(const NfaNode &node, uint32_t to);
  uint32_t newState();

  // GrammarLayout.cpp
  std::vector<uint32_t> heights() const;
  std::shared_ptr<const Grammar> layOut();
  void findByteClasses(Grammar &grammar) const;

  const GrammarBuilder &builder_;
  std::vector<Rule> rules_;      // of the builder, then bodies of counted repetitions, the root last
  std::vector<uint32_t> order_;  // callees first
  std::vector<Measure> measured_;
  std::vector<bool> isMeasured_;
  std::map<uint32_t, uint32_t> bodyRules_; // by expression
  std::vector<NfaNode> nfa_;
  std::vector<uint32_t> stamp_; // of closures
  uint32_t stamps_ = 0;
  std::vector<Draft> states_;
  std::vector<DraftCall> calls_;
  uint32_t root_ = 0, owner_ = 0; // owner_: of the nodes that are being made
  uint64_t work_ = 0;
};

} // namespace llmc

#endif // LLMC_RUNTIME_GRAMMAR_GRAMMARCOMPILER_H
