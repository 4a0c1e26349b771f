import type { Diagnostic } from "../api/client";
import type { Edit } from "./edits";
import { rangeOf, steps, type Path, type Reading } from "./yaml";

/** What is wrong with a draft, and where in its text. */
export interface Problem {
  diagnostic: Diagnostic;
  path: Path;
  /** Offsets into the text, as the editor counts: in UTF-16. */
  from: number;
  to: number;
  line: number;
  /** What stands there: a mend is of that, and of nothing that is there by now. */
  stands: string;
}

export function problems(diagnostics: readonly Diagnostic[], reading: Reading): Problem[] {
  const starts = lineStarts(reading.text);
  const lineOf = (offset: number) => starts.findLastIndex((start) => start <= offset) + 1;
  return diagnostics
    .map((diagnostic) => {
      const path = steps(diagnostic.path);
      const { line, column, end_line, end_column } = diagnostic;
      const found = rangeOf(reading, path);
      const from = line === null ? found[0] : offset(reading.text, starts, line, column ?? 1);
      const to = end_line ? offset(reading.text, starts, end_line, end_column ?? 1) : from;
      const stands = reading.text.slice(from, to);
      return { diagnostic, path, from, to: Math.max(from, to), line: line ?? lineOf(from), stands };
    })
    .sort((one, other) => one.from - other.from);
}

/** What this page cannot read, though the server might: it sends values, and not the text. */
export const unread = ({ document, lines }: Reading): Problem[] =>
  document.errors.slice(0, 1).map(({ message, pos: [from, to] }) => ({
    diagnostic: {
      file: null,
      line: lines.linePos(from).line,
      column: null,
      end_line: null,
      end_column: null,
      path: "",
      severity: "error",
      code: "malformed-yaml",
      message: message.split("\n")[0]!,
      found: null,
      expected: null,
      suggestion: null,
      replacement: null,
    },
    path: [],
    from,
    to,
    line: lines.linePos(from).line,
    stands: "",
  }));

/** An offset of a place that the server tells: lines from 1, columns from 1 in code points. */
function offset(text: string, starts: readonly number[], line: number, column: number): number {
  const from = starts[Math.min(line, starts.length) - 1]!;
  const end = starts[line] ?? text.length + 1;
  const before = Array.from(text.slice(from, end - 1)).slice(0, column - 1);
  return from + before.join("").length;
}

const lineStarts = (text: string): number[] => [
  0,
  ...[...text.matchAll(/\n/g)].map(({ index }) => index + 1),
];

/** What would do instead; nothing where the message says it already. */
export const instead = ({ diagnostic: { message, suggestion, expected } }: Problem): string => {
  if (suggestion) return suggestion;
  return expected && !message.includes(expected) ? `expected ${expected}` : "";
};

/** One sentence about a problem, with what would be accepted. */
export const sentence = (problem: Problem): string =>
  [problem.diagnostic.message, instead(problem)].filter(Boolean).join(", ");

/** What puts a problem right: the text that the server would have in its place. */
export function mend({ diagnostic, from, to, stands }: Problem, text: string): Edit | undefined {
  const insert = diagnostic.replacement;
  return insert && text.slice(from, to) === stands ? { from, to, insert } : undefined;
}

/** The problems of a text in the text that it has become: how an offset moves is told. */
export const moved = (
  problems: readonly Problem[],
  mapped: (offset: number, side: -1 | 1) => number,
): Problem[] =>
  problems.map((each) => ({ ...each, from: mapped(each.from, -1), to: mapped(each.to, 1) }));

export const isError = ({ diagnostic }: Problem): boolean => diagnostic.severity !== "warning";

/** Whether it is an error for which a dry run of the chain would be refused as well. */
export const isOfChain = (problem: Problem): boolean =>
  isError(problem) && problem.path[0] !== "inputs" && problem.path[0] !== "outputs";
