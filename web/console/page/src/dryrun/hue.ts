/** The colour of a message, by its number: an angle, neighbours far apart. Its lightness is the theme's. */
export const hue = (message: number): number => (message * 137.5 + 190) % 360;
