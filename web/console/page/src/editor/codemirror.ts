import {
  autocompletion,
  closeBrackets,
  closeBracketsKeymap,
  completionKeymap,
  type Completion,
  type CompletionContext,
  type CompletionResult,
} from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { bracketMatching, indentOnInput } from "@codemirror/language";
import {
  lintGutter,
  nextDiagnostic,
  previousDiagnostic,
  setDiagnostics,
  type Diagnostic as Mark,
} from "@codemirror/lint";
import { EditorState, StateEffect } from "@codemirror/state";
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  hoverTooltip,
  keymap,
  type Tooltip,
} from "@codemirror/view";
import { look, named } from "../code/look";
import { isError, mend, sentence, type Problem } from "../draft/checking";
import type { Offer } from "./completion";

/** What the text of an editor asks and tells. */
export interface Wants {
  text: string;
  label: string;
  wrote(text: string, cursor: number, mapped: (offset: number, side: -1 | 1) => number): void;
  moved(cursor: number): void;
  offers(text: string, offset: number): { from: number; options: Offer[] } | undefined;
  /** What is known of what stands at an offset. */
  help(
    offset: number,
  ): { from: number; to: number; name: string; noun: string; says: string } | undefined;
}

const problemKeys = [
  { key: "F8", run: nextDiagnostic },
  { key: "Shift-F8", run: previousDiagnostic },
];

/** Open the search, which is loaded when somebody searches first. */
function find(view: EditorView): boolean {
  void import("@codemirror/search").then(({ openSearchPanel, search, searchKeymap }) => {
    const extensions = [search({ top: true }), keymap.of(searchKeymap)];
    view.dispatch({ effects: StateEffect.appendConfig.of(extensions) });
    openSearchPanel(view);
  });
  return true;
}

export function textEditor(parent: HTMLElement, wants: Wants): EditorView {
  const complete = ({ state, pos, explicit }: CompletionContext): CompletionResult | null => {
    const found = wants.offers(state.doc.toString(), pos);
    if (!found?.options.length || (found.from === pos && !explicit)) return null;
    return { from: found.from, options: found.options.map(completion), validFor: /^[\w.-]*$/ };
  };
  return new EditorView({
    parent,
    state: EditorState.create({
      doc: wants.text,
      extensions: [
        look,
        lintGutter(),
        history(),
        drawSelection(),
        highlightActiveLine(),
        highlightActiveLineGutter(),
        indentOnInput(),
        bracketMatching(),
        closeBrackets(),
        autocompletion({ override: [complete], icons: false }),
        hoverTooltip((_, offset) => helpAt(wants, offset)),
        keymap.of([
          ...problemKeys,
          ...closeBracketsKeymap,
          ...completionKeymap,
          { key: "Mod-f", run: find },
          ...historyKeymap,
          ...defaultKeymap,
          indentWithTab,
        ]),
        named(wants.label),
        EditorView.updateListener.of(({ changes, docChanged, selectionSet, state }) => {
          const cursor = state.selection.main.head;
          if (docChanged)
            wants.wrote(state.doc.toString(), cursor, (offset, side) =>
              changes.mapPos(offset, side),
            );
          else if (selectionSet) wants.moved(cursor);
        }),
      ],
    }),
  });
}

/** In the order in which they are offered, those that are needed first. */
const completion = ({ label, apply, detail, info, needed, is }: Offer, at: number): Completion => ({
  label,
  apply,
  detail,
  boost: (needed ? 20 : 10) - at / 100,
  type: is === "key" ? "property" : "enum",
  ...(info ? { info } : {}),
});

function helpAt(wants: Wants, offset: number): Tooltip | null {
  const help = wants.help(offset);
  if (!help) return null;
  const create = () => {
    const dom = document.createElement("div");
    dom.className = "cm-help";
    const [name, noun, says] = ["b", "i", "p"].map((tag) => document.createElement(tag));
    name!.textContent = help.name;
    noun!.textContent = help.noun;
    says!.textContent = help.says;
    dom.append(name!, noun!, says!);
    return { dom };
  };
  return { pos: help.from, end: help.to, above: true, create };
}

/** Mark what is wrong; what can be put right with one word gets a button for that. */
export function mark(view: EditorView, problems: readonly Problem[]): void {
  const { doc } = view.state;
  const { length } = doc;
  const text = doc.toString();
  const marks = problems.map((problem): Mark => {
    const edit = mend(problem, text);
    const from = Math.min(problem.from, length);
    return {
      from,
      to: Math.min(Math.max(problem.to, from), length),
      severity: isError(problem) ? "error" : "warning",
      message: sentence(problem),
      actions: edit
        ? [
            {
              name: `use '${edit.insert}'`,
              apply: (at) => at.state.doc.eq(doc) && at.dispatch({ changes: edit }),
            },
          ]
        : [],
    };
  });
  view.dispatch(setDiagnostics(view.state, marks));
}
