/** Cards are tiles when the view is as far away as this. */
export const FAR = 0.42;
const STEP = 300;
const MARGIN = 40;

export interface Sight {
  x: number;
  y: number;
  zoom: number;
}

/** What part of the graph is in sight: as a raster, so that it changes seldom while the view moves. */
export class View {
  far = $state(true);
  raster = $state.raw({ x0: 0, y0: 0, x1: 0, y1: 0 });
  /** Whether somebody has moved it: then it is not moved for them. */
  isTouched = false;
  /** How often all of it was to be shown. */
  fits = $state(0);
  at: Sight = { x: 0, y: 0, zoom: 1 };

  /** Show all of it again. */
  fit(): void {
    this.isTouched = false;
    this.fits += 1;
  }

  see(at: Sight, width: number, height: number): void {
    this.at = at;
    const far = at.zoom < FAR;
    if (far !== this.far) this.far = far;
    if (far) return;
    const down = (screen: number) => Math.floor(screen / at.zoom / STEP) * STEP;
    const up = (screen: number) => Math.ceil(screen / at.zoom / STEP) * STEP;
    const next = {
      x0: down(-at.x - MARGIN),
      y0: down(-at.y - MARGIN),
      x1: up(width - at.x + MARGIN),
      y1: up(height - at.y + MARGIN),
    };
    const { x0, y0, x1, y1 } = this.raster;
    if (x0 !== next.x0 || y0 !== next.y0 || x1 !== next.x1 || y1 !== next.y1) this.raster = next;
  }
}
