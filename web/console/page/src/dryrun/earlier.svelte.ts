import type { Batch } from "./given";

const MOST = 8;

/** What was tried of each pipeline since the page was opened, the latest first. In memory alone. */
class Earlier {
  #tried = $state.raw<ReadonlyMap<string, Batch[][]>>(new Map());

  of(id: string): Batch[][] {
    return this.#tried.get(id) ?? [];
  }

  remember(id: string, given: Batch[]): void {
    const mark = JSON.stringify(given);
    const others = this.of(id).filter((each) => JSON.stringify(each) !== mark);
    this.#tried = new Map([...this.#tried, [id, [given, ...others].slice(0, MOST)]]);
  }
}

export const earlier = new Earlier();
