import { letters, type Alike, type LetterPage } from "../api/letters";
import { Asked } from "../ui/asked.svelte";

/** The letters of a pipeline that failed alike, a page at a time, the newest first. */
export class Letters {
  #asked = new Asked<LetterPage>();
  /** Before which letter each page up to this one begins. */
  #before = $state.raw<readonly (number | undefined)[]>([undefined]);

  constructor(
    readonly pipeline: string,
    readonly alike: Alike,
  ) {}

  get page(): LetterPage | undefined {
    return this.#asked.value;
  }

  /** Why the page could not be had. */
  get fault(): string {
    return this.#asked.fault;
  }

  get number(): number {
    return this.#before.length;
  }

  next(): void {
    const before = this.page?.next;
    if (before != null) this.#turnTo([...this.#before, before]);
  }

  previous(): void {
    this.#turnTo(this.#before.slice(0, -1));
  }

  #turnTo(before: readonly (number | undefined)[]): void {
    this.#before = before;
    void this.load();
  }

  async load(): Promise<void> {
    const before = this.#before.at(-1);
    await this.#asked.ask(() => letters.page(this.pipeline, this.alike, before));
    // What was on the last page may be gone.
    if (this.number > 1 && this.page && isEmpty(this.page)) this.previous();
  }
}

const isEmpty = ({ entries, damaged }: LetterPage): boolean => !entries.length && !damaged.length;
