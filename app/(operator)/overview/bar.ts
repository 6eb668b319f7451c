/** The smallest visible height of a segment: 3 pixels. The drawing is 112 pixels and 100 units high. */
export const MIN_HEIGHT = 3

/**
 * The heights of a bar's segments. One failure among thousands must be visible: each non-zero segment gets MIN_HEIGHT
 * first, and the rest of the bar is divided in proportion.
 * @param unit height of a count of one
 */
export function stackHeights(counts: readonly number[], unit: number): number[] {
  const all = counts.reduce((sum, count) => sum + count, 0)
  const least = counts.filter((count) => count > 0).length * MIN_HEIGHT
  const rest = Math.max(0, all * unit - least)
  return counts.map((count) => (count === 0 ? 0 : MIN_HEIGHT + (rest * count) / all))
}
