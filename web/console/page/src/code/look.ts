import { yaml } from "@codemirror/lang-yaml";
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import type { Extension } from "@codemirror/state";
import { EditorView, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";

/** How YAML looks, wherever it is shown. The style sheet that this becomes has the nonce of the page. */
const words = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--accent)" },
  { tag: [tags.string, tags.content], color: "var(--string)" },
  { tag: tags.number, color: "var(--in)" },
  { tag: [tags.bool, tags.null, tags.keyword], color: "var(--literal)" },
  { tag: [tags.comment, tags.punctuation, tags.separator], color: "var(--faint)" },
]);

const soft = (colour: string, part: number): string =>
  `color-mix(in oklab, ${colour} ${part}%, transparent)`;

const frame = EditorView.theme({
  "&": { height: "100%", background: "var(--surface)", color: "var(--text)" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": {
    font: "13px/1.6 var(--mono)",
    fontVariantLigatures: "none",
    scrollbarWidth: "thin",
    scrollbarColor: "var(--line-strong) transparent",
  },
  ".cm-content": { caretColor: "var(--accent)" },
  ".cm-gutters": {
    background: "var(--surface)",
    color: "var(--faint)",
    border: "0",
    borderRight: "1px solid var(--line)",
  },
  ".cm-activeLine": { background: soft("var(--accent)", 7) },
  ".cm-activeLineGutter": { background: soft("var(--accent)", 12), color: "var(--text)" },
  ".cm-cursor": { borderLeft: "2px solid var(--accent)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground":
    { background: soft("var(--accent)", 22) },
  ".cm-matchingBracket": { background: soft("var(--accent)", 18) },
  ".cm-panels": { background: "var(--sunken)", color: "var(--text)", borderColor: "var(--line)" },
  ".cm-textfield": { background: "var(--raised)", borderColor: "var(--line-strong)" },
  ".cm-button": {
    background: "var(--raised)",
    color: "var(--text)",
    border: "1px solid var(--line-strong)",
    borderRadius: "6px",
  },
  ".cm-tooltip": {
    background: "var(--raised)",
    color: "var(--text)",
    border: "1px solid var(--line-strong)",
    borderRadius: "8px",
    boxShadow: "var(--lift)",
    overflow: "hidden",
    font: "12px/1.45 var(--ui)",
    maxWidth: "min(460px, 90vw)",
  },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", maxHeight: "15em" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { padding: "3px 10px", lineHeight: "1.6" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": {
    background: "var(--accent-soft)",
    color: "var(--text)",
  },
  ".cm-completionDetail": { color: "var(--faint)", fontStyle: "normal", marginLeft: "12px" },
  ".cm-completionMatchedText": {
    textDecoration: "none",
    color: "var(--accent)",
    fontWeight: "700",
  },
  ".cm-tooltip.cm-completionInfo": { padding: "8px 10px", maxWidth: "300px" },
  ".cm-help": { padding: "8px 11px" },
  ".cm-help b": { font: "600 12px var(--mono)" },
  ".cm-help i": { font: "11px var(--mono)", color: "var(--faint)", marginLeft: "8px" },
  ".cm-help p": { marginTop: "3px", color: "var(--muted)" },
  ".cm-diagnostic": { padding: "7px 10px", borderLeftWidth: "3px" },
  ".cm-diagnostic-error": { borderLeftColor: "var(--bad)" },
  ".cm-diagnostic-warning": { borderLeftColor: "var(--warn)" },
  ".cm-diagnosticAction": {
    background: "var(--accent)",
    color: "var(--on-accent)",
    borderRadius: "5px",
    padding: "3px 9px",
  },
  ".cm-lintRange-active": { background: soft("var(--bad)", 14) },
  ".cm-lint-marker": { width: "0.8em", height: "0.8em", content: "none" },
  ".cm-lint-marker-error": { background: "var(--bad)", borderRadius: "2px" },
  ".cm-lint-marker-warning": {
    background: "var(--warn)",
    clipPath: "polygon(50% 0, 100% 100%, 0 100%)",
  },
  ".cm-changedLine, &.cm-merge-b .cm-changedLine": { background: soft("var(--ok)", 12) },
  "&.cm-merge-a .cm-changedLine, .cm-deletedChunk": { background: soft("var(--bad)", 11) },
  // Below the words: a stronger ground would leave too little contrast.
  ".cm-changedText, &.cm-merge-b .cm-changedText": {
    background: "none",
    boxShadow: "inset 0 -1px var(--ok)",
  },
  "&.cm-merge-a .cm-changedText, .cm-deletedChunk .cm-deletedText": {
    background: "none",
    boxShadow: "inset 0 -1px var(--bad)",
  },
  ".cm-deletedLine del": { textDecoration: "none" },
  ".cm-collapsedLines": {
    background: "var(--sunken)",
    color: "var(--muted)",
    padding: "3px 12px",
    font: "12px var(--ui)",
  },
  ".cm-collapsedLines:before, .cm-collapsedLines:after": { content: "none" },
});

/** YAML in the colours of the page. */
export const look: Extension = [
  EditorView.cspNonce.of(
    document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? "",
  ),
  frame,
  lineNumbers(),
  yaml(),
  syntaxHighlighting(words),
];

/** A text that is written: what it is called, and that it can be scrolled to with the keyboard. */
export const named = (label: string): Extension =>
  EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" });

/** A text that is read and not written. */
export const readOnly = (label: string): Extension => [
  EditorView.editable.of(false),
  EditorView.contentAttributes.of({ "aria-readonly": "true" }),
  named(label),
];
