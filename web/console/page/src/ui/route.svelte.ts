/** Where the page is: `#/p/press-means/live`. A hash, so that no server has to know of it. */
class Route {
  path = $state.raw(parse());

  constructor() {
    addEventListener("hashchange", () => (this.path = parse()));
  }

  get screen(): string {
    return this.path[0] ?? "";
  }

  go(...parts: string[]): void {
    location.hash = address(...parts);
  }
}

/** The address of a screen, for links. */
export const address = (...parts: string[]): string =>
  "#/" + parts.map(encodeURIComponent).join("/");

function parse(): string[] {
  return location.hash.replace(/^#\/?/, "").split("/").filter(Boolean).map(decoded);
}

/** A part that is no encoded text stands for itself. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export const route = new Route();
