import address from "./layout.worker?worker&url";
import type { Edge, Placed } from "./layout";

interface Policy {
  createScriptURL(url: string): string;
}
interface Policies {
  createPolicy(name: string, rules: Policy): Policy;
}

// The page may make workers of its own files alone, and only under this name.
const policies = (globalThis as { trustedTypes?: Policies }).trustedTypes;
const policy = policies?.createPolicy("headrace-worker", { createScriptURL: (url) => url });

/** Where cards stand that nobody has moved. What stands somewhere stays there until all are laid out. */
class Placing {
  places = $state.raw<ReadonlyMap<string, Placed>>(new Map());
  #worker: Worker | undefined;
  #turn = 0;
  #laid = "";

  /** Lay out a graph, unless it is the one that is laid out. */
  place(ids: readonly string[], edges: readonly Edge[]): void {
    const wanted = JSON.stringify([ids, edges]);
    if (wanted === this.#laid) return;
    this.#laid = wanted;
    this.#turn += 1;
    this.#working().postMessage({ turn: this.#turn, ids, edges });
  }

  #working(): Worker {
    if (this.#worker) return this.#worker;
    this.#worker = new Worker(policy?.createScriptURL(address) ?? address, { type: "module" });
    this.#worker.onmessage = ({ data }) => {
      if (data.turn === this.#turn) this.places = data.places;
    };
    return this.#worker;
  }
}

export const placing = new Placing();
