/** The outcome of the demonstration. */
export interface Outcome {
  /** the differences from the promise */
  failures: readonly string[]
  /** parts that were not shown, each with the reason */
  skipped: readonly string[]
}

const PROMISE = 'five confidential payments, and not a stroop of XLM from the employer.'

/** The last lines of the demonstration: it promises nothing for what it skipped. */
export function closingLines({ failures, skipped }: Outcome): string[] {
  const told = [
    ...failures.map((failure) => `NOT AS PROMISED: ${failure}`),
    ...skipped.map((part) => `SKIPPED: ${part}`),
  ]
  if (failures.length > 0) return told
  return [...told, skipped.length === 0 ? `All as promised: ${PROMISE}` : `What was shown is as promised: ${PROMISE}`]
}
