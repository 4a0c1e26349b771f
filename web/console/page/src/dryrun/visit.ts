/** The arrow keys among what is drawn: left and right in a lane, up and down to what became of the same message. */
export function visit(event: KeyboardEvent): void {
  const here = (event.target as Element).closest<SVGElement>("[data-stop]");
  const lane = here?.closest("[data-lane]");
  if (!here || !lane) return;
  const stops = all(lane);
  const place = stops.indexOf(here);
  let to: SVGElement | undefined;
  if (event.key === "ArrowRight") to = stops[place + 1];
  else if (event.key === "ArrowLeft") to = stops[place - 1];
  else if (event.key === "Home") to = stops[0];
  else if (event.key === "End") to = stops.at(-1);
  else if (event.key === "ArrowDown") to = kin(here, place, lane, "nextElementSibling");
  else if (event.key === "ArrowUp") to = kin(here, place, lane, "previousElementSibling");
  else return;
  event.preventDefault();
  to?.focus();
}

const all = (lane: Element): SVGElement[] => [...lane.querySelectorAll<SVGElement>("[data-stop]")];

/** In the nearest lane that has anything: what has a message in common, else what is at the same place. */
function kin(
  here: SVGElement,
  place: number,
  lane: Element,
  way: "nextElementSibling" | "previousElementSibling",
): SVGElement | undefined {
  const mine = origins(here);
  for (let other = lane[way]; other; other = other[way]) {
    const stops = all(other);
    if (stops.length)
      return (
        stops.find((stop) => origins(stop).some((origin) => mine.includes(origin))) ??
        stops[Math.min(place, stops.length - 1)]
      );
  }
  return undefined;
}

const origins = (stop: SVGElement): string[] => stop.dataset.stop!.split(" ");
