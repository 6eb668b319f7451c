/** Steps of an axis in seconds that people read easily: none of them is a fraction of a minute or an hour. */
const SECONDS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 18_000, 36_000]

/** Steps of a count: 1, 2, 5, 10, … */
const COUNTS = Array.from({ length: 12 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat()

/** The three or four values of an axis that begins at 0 and reaches `most`. */
export function ticksOf(most: number, of: 'count' | 'seconds'): number[] {
  const steps = of === 'count' ? COUNTS : SECONDS
  const step = steps.find((one) => most <= 3 * one) ?? most / 2
  // Two steps at least, so that a single tall bar has a value to compare it with.
  return most <= 2 * step ? [0, step, 2 * step] : [0, step, 2 * step, 3 * step]
}

/** 0.5 → '0.5 s', 20 → '20 s', 120 → '2 min', 3600 → '1 h'. */
export function secondsLabel(value: number): string {
  if (value < 60) return `${Number(value.toFixed(1))} s`
  return value < 3_600 ? `${value / 60} min` : `${value / 3_600} h`
}
