import { authoring, type Version } from "../api/authoring";
import { toYaml } from "./exact";

const KEPT = "headrace-draft:";

/** What somebody writes: kept until it is applied or given up, also over a reload of the page. */
export class Draft {
  text = $state("");
  /** What it began with: the text of what ran then, and the mark of that version. */
  base = $state("");
  etag = $state("");

  /** No id: of a pipeline that does not run yet. */
  constructor(readonly id: string | undefined) {}

  get isChanged(): boolean {
    return this.text !== this.base;
  }

  write(text: string): void {
    this.text = text;
    this.#keep();
  }

  /** Begin with a version; what was written before is not kept. */
  begin(text: string, etag = ""): void {
    this.rebase(text, etag);
    this.write(text);
  }

  /** Have it be a change of another version from here on; what is written stays. */
  rebase(base: string, etag: string): void {
    this.base = base;
    this.etag = etag;
    this.#keep();
  }

  forget(): void {
    sessionStorage.removeItem(this.#key);
  }

  /** Go on with what was kept; false where nothing was. */
  resume(): boolean {
    const kept = sessionStorage.getItem(this.#key);
    if (!kept) return false;
    Object.assign(this, JSON.parse(kept) as Pick<Draft, "text" | "base" | "etag">);
    return true;
  }

  #keep(): void {
    if (!this.isChanged) return this.forget();
    const { text, base, etag } = this;
    sessionStorage.setItem(this.#key, JSON.stringify({ text, base, etag }));
  }

  get #key(): string {
    return KEPT + (this.id ?? "");
  }
}

/** The text of a version: of its config alone, in the style of people. */
export const textOf = ({ json }: Version): string => toYaml(json, "config");

/** The draft of a running pipeline: what was kept, or what runs now. */
export async function draftOf(id: string): Promise<Draft> {
  const draft = new Draft(id);
  if (!draft.resume()) {
    const version = await authoring.version(id);
    draft.begin(textOf(version), version.etag);
  }
  return draft;
}
