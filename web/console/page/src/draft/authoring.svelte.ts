import { authoring as server } from "../api/authoring";
import { Refusal, type ComponentDoc } from "../api/client";
import { isError, isOfChain, moved, problems, unread, type Problem } from "./checking";
import type { Draft } from "./draft.svelte";
import { add, certain, put, remove, scalar, type Edit } from "./edits";
import type { Grammar } from "./grammar";
import { hereAt, type Here } from "./here";
import type { Sampling } from "./sampling.svelte";
import { member, nodeAt, pathAt, placeOf, read, type Path, type Reading } from "./yaml";

/** After so many milliseconds without a key the text is checked. */
const QUIET = 250;

/** What the text does when the form or the list of problems asks for it. */
export interface Text {
  change(edit: Edit): void;
  jump(offset: number): void;
  focus(): void;
}

/** One draft being edited: its text, what is wrong with it, and where the cursor is. */
export class Authoring {
  /** What is wrong, at its places in the text as it is by now. */
  problems = $state.raw<readonly Problem[]>([]);
  /** The same as it was found: the text has its marks by these, and moves them itself. */
  found = $state.raw<readonly Problem[]>([]);
  /** Milliseconds that the last check took; none before the first one. */
  took = $state<number>();
  isChecking = $state(false);
  /** Why the text could not be checked. */
  trouble = $state("");
  here = $state.raw<Here>();
  /** The last text that was YAML: chain and form show it while somebody types. */
  reading: Reading = $state.raw(read(""));
  isBroken = $state(false);
  /** Whether what it is a change of was deleted meanwhile: then it is a new pipeline. */
  isGone = $state(false);
  text: Text | undefined;
  #cursor = 0;
  #turn = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    readonly draft: Draft,
    readonly grammar: Grammar,
    readonly docs: readonly ComponentDoc[],
    readonly sampling: Sampling,
  ) {
    this.#look(draft.text);
    void this.check();
  }

  get cursor(): number {
    return this.#cursor;
  }

  get errors(): number {
    return this.problems.filter(isError).length;
  }

  /** Whether the text is known to be one that the server takes. */
  get isFine(): boolean {
    return !this.isChecking && !this.isBroken && !this.trouble && this.errors === 0;
  }

  /** The text is another one; how offsets have moved is told, so that problems stay at their places. */
  wrote(text: string, cursor: number, mapped: Parameters<typeof moved>[1]): void {
    this.#turn += 1; // what is being checked is not this text
    this.problems = moved(this.problems, mapped);
    this.draft.write(text);
    this.#look(text);
    this.moved(cursor);
    this.isChecking = true;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.check(), QUIET);
  }

  moved(cursor: number): void {
    this.#cursor = cursor;
    if (!this.isBroken)
      this.here = hereAt(this.grammar, this.reading.value, pathAt(this.reading, cursor));
  }

  async check(): Promise<void> {
    clearTimeout(this.#timer);
    const turn = ++this.#turn;
    const { text, id } = this.draft;
    this.isChecking = true;
    const began = performance.now();
    try {
      const { diagnostics } = await server.check(text, this.isGone ? undefined : id);
      if (turn !== this.#turn) return;
      const reading = read(text);
      const found = problems(diagnostics, reading);
      this.#tell(found.some(isError) ? found : [...unread(reading), ...found]);
      this.took = performance.now() - began;
      this.trouble = "";
    } catch (cause) {
      if (turn !== this.#turn) return;
      if (cause instanceof Refusal && cause.status === 404 && !this.isGone) {
        this.isGone = true;
        return this.check();
      }
      this.trouble = cause instanceof Refusal ? cause.message : "The server does not answer.";
    }
    this.isChecking = false;
    if (!this.problems.some(isOfChain))
      void this.sampling.through(this.reading).catch(() => undefined);
  }

  /** Show what the server objected to when it was asked to take the draft. */
  refused({ diagnostics }: Refusal): void {
    this.#tell(problems(diagnostics, read(this.draft.text)));
  }

  #tell(problems: readonly Problem[]): void {
    this.problems = this.found = problems;
  }

  /** Write a box of the form into the text; nothing takes the key out. */
  set(path: Path, written: string, kind: "text" | "plain"): void {
    if (written === "") return this.remove(path);
    const value = scalar(written, kind);
    this.#change(put(this.reading, path, value), (document) =>
      document.setIn(path, document.createNode(read(value).document.contents)),
    );
  }

  /** Add what has to be written of a value, and go there. */
  add(path: Path, value: unknown): void {
    this.#change(add(this.reading, path, value), (document) => {
      if (path.length) document.setIn(path, document.createNode(value));
    });
    this.go(path);
  }

  remove(path: Path): void {
    if (member(this.reading.value, path) === undefined && !nodeAt(this.reading, path)) return;
    this.#change(remove(this.reading, path), (document) => document.deleteIn(path));
  }

  replaceAll(text: string): void {
    this.text?.change({ from: 0, to: this.draft.text.length, insert: text });
  }

  go(path: Path): void {
    this.text?.jump(placeOf(this.reading, path));
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#turn += 1;
  }

  #change(edit: Edit, wanted: (document: Reading["document"]) => void): void {
    if (!this.isBroken) this.text?.change(certain(this.reading, edit, wanted));
  }

  #look(text: string): void {
    const reading = read(text);
    this.isBroken = reading.document.errors.length > 0;
    if (this.isBroken) return;
    this.reading = reading;
    this.here = hereAt(this.grammar, reading.value, pathAt(reading, this.#cursor));
  }
}
