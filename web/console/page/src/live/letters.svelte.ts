import { letters, type Alike, type LetterSignature } from "../api/letters";
import { Asked } from "../ui/asked.svelte";
import { Seldom } from "./seldom";

/** What others replay or delete is told by nobody. */
const EACH_MS = 15_000;
const APART_MS = 1000;

/** What failed alike and was put down, of all pipelines: asked for while somebody looks, and as more is put down. */
export class DeadLetters {
  #asked = new Asked<readonly LetterSignature[]>();
  #soon = new Seldom(
    () => this.load(),
    () => APART_MS,
  );
  #looking = 0;
  #timer: ReturnType<typeof setInterval> | undefined;

  get signatures(): readonly LetterSignature[] | undefined {
    return this.#asked.value;
  }

  /** Why they could not be had. */
  get fault(): string {
    return this.#asked.fault;
  }

  load(): Promise<void> {
    return this.#asked.ask(letters.signatures);
  }

  /** Keep them up to date, until the function that is returned is called. */
  watch(): () => void {
    if (!this.#looking++) {
      void this.load();
      this.#timer = setInterval(() => document.hidden || this.#soon.soon(), EACH_MS);
    }
    return () => {
      if (!--this.#looking) clearInterval(this.#timer);
    };
  }

  /** Some were put down, replayed or deleted. */
  changed(): void {
    if (this.#looking) this.#soon.soon();
  }

  /** What is known of those of a pipeline that failed alike, at each component; undefined: nothing yet. */
  alike(pipeline: string, { stage, message }: Alike): readonly LetterSignature[] | undefined {
    return this.signatures?.filter(
      (each) => each.pipeline_id === pipeline && each.stage === stage && each.message === message,
    );
  }

  /** How many a pipeline has. */
  of(pipeline: string): number {
    const own = this.signatures?.filter((each) => each.pipeline_id === pipeline) ?? [];
    return own.reduce((sum, { count }) => sum + count, 0);
  }
}
