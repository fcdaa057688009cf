//===- Html.cpp - an explanation as one page ------------------------------===//
#include "Format.h"

#include "llmc/Support/Text.h"

#include <algorithm>

using namespace llmc;

static const char kStyle[] = R"(
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --dim: #667; --line: #dde; --memory: #2463c4; --compute: #c2571a; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e7eb; --paper: #15181c; --dim: #9aa3ad; --line: #2c3238; --memory: #6aa5ff; --compute: #ffa05c; }
}
body { font: 15px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2em auto; max-width: 1200px; padding: 0 1em; }
h1 { font-size: 1.4em; margin-bottom: .2em; } p { margin: .3em 0; } .dim { color: var(--dim); } .table { overflow-x: auto; }
.roofline { width: 100%; height: auto; margin: 1em 0; } .roofline text { font-size: 12px; fill: var(--ink); }
.grid { stroke: var(--line); } .roof { fill: none; stroke: var(--dim); stroke-width: 1.5; } .gap { stroke-width: 1; stroke-dasharray: 3 3; }
circle.memory { fill: var(--memory); } circle.compute { fill: var(--compute); } circle { fill-opacity: .7; stroke: var(--paper); }
.memory { stroke: var(--memory); } .compute { stroke: var(--compute); } td.memory { color: var(--memory); } td.compute { color: var(--compute); }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 13px; } th, td { padding: .25em .7em; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { color: var(--dim); font-weight: 600; } td.name, th.name { text-align: left; } tr.total td { font-weight: 600; border-bottom: 0; }
)";

std::string llmc::escaped(const std::string &raw) {
  std::string result;
  for (char c : printable(raw, 300))
    result += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : c == '"' ? "&quot;" : std::string(1, c);
  return result;
}

/// Cells of a row, the first `names` of them to the left.
static std::string cells(const std::vector<std::string> &texts, const char *tag, size_t names) {
  std::string result;
  for (size_t i = 0; i < texts.size(); ++i)
    result += text("<%s%s>%s</%s>", tag, i < names ? " class=\"name\"" : "", texts[i].c_str(), tag);
  return result;
}

static std::vector<std::string> workCells(const KernelRow &row) {
  auto mb = [](double bytes) { return text("%.3f", bytes * 1e-6); };
  return {std::to_string(row.launches), mb(row.work.weightBytes), mb(row.work.activationBytes), mb(row.work.kvBytes),
          text("%.4f", row.work.flops * 1e-9), text("%.2f", row.intensity())};
}

static std::vector<std::string> timeCells(const KernelRow &row, double total) {
  std::vector<std::string> result = {timeText(row.predicted)};
  if (row.measured) {
    result.push_back(timeText(*row.measured));
    result.push_back(text("%.0f %%", *row.measured > 0 ? 100 * row.predicted / *row.measured : 0));
  }
  result.push_back(text("%.1f %%", total > 0 ? 100 * row.seconds() / total : 0));
  return result;
}

static std::string table(const Explanation &e) {
  std::vector<std::string> heads = {"op", "kernel", "layers", "launches", "weights MB", "activations MB", "KV MB", "GFLOP", "FLOP/byte", "bound", "predicted"};
  if (e.measured) {
    heads.push_back("measured");
    heads.push_back("of the bound");
  }
  heads.push_back("share");
  std::string result = "<div class=\"table\"><table>\n<thead><tr>" + cells(heads, "th", 3) + "</tr></thead>\n<tbody>\n";
  const double total = e.measured.value_or(e.predicted);
  for (const KernelRow &row : e.rows) {
    result += "<tr>" + cells({escaped(row.op), escaped(row.kernel), layersText(row.layers)}, "td", 3) + cells(workCells(row), "td", 0) +
              text("<td class=\"%s\">%s</td>", row.memoryBound() ? "memory" : "compute", ceilingText(row, e.hardware).c_str()) +
              cells(timeCells(row, total), "td", 0) + "</tr>\n";
  }
  return result + "<tr class=\"total\">" + cells({"total", "", ""}, "td", 3) + cells(workCells(e.total()), "td", 0) + "<td></td>" +
         cells(timeCells(e.total(), total), "td", 0) + "</tr>\n</tbody></table></div>\n";
}

std::string llmc::explainHtml(const Explanation &e) {
  const std::string title = escaped(e.model.empty() ? e.package : e.model) + ": " + escaped(describe(e.shape));
  const std::string sentences = summary(e);
  std::string paragraphs;
  for (size_t start = 0; start <= sentences.size();) { // one a line
    const size_t end = std::min(sentences.find('\n', start), sentences.size());
    paragraphs += "<p>" + escaped(sentences.substr(start, end - start)) + "</p>\n";
    start = end + 1;
  }
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n<title>" +
         title + "</title>\n<style>" + kStyle + "</style>\n</head>\n<body>\n<h1>" + title + "</h1>\n<p class=\"dim\">" + escaped(e.package) +
         " for " + escaped(e.isa) + ", on " + escaped(e.hardware.name) + ": " + escaped(e.hardware.description) + "</p>\n" + paragraphs +
         rooflineSvg(e) +
         "<p class=\"dim\">A point is a kernel: its area is its share of the time, " +
         (e.measured ? "its height the speed that was measured, the dashed line what is left to the roof"
                     : "its place on the roof the speed that the machine allows") +
         "; blue waits for memory, orange for arithmetic. Kernels that only move bytes are in the table alone.</p>\n" + table(e) +
         "</body>\n</html>\n";
}
