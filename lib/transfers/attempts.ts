import { describeFailure, log } from '#lib/observability/log.ts'

const MOST_FAILURES = 1_000

/**
 * Runs work that is retried later if it fails. An outage is logged as one line: a failure is logged only if it differs
 * from the last one of the same `subject`.
 */
export function openAttempts(): (subject: string, work: () => Promise<unknown>) => Promise<void> {
  const failures = new Map<string, string>()
  return async (subject, work) => {
    try {
      await work()
      failures.delete(subject)
    } catch (error) {
      const failure = describeFailure(error)
      if (failures.get(subject) !== failure) log('error', 'submission', { transfer: subject, failure })
      // A transfer that another process has settled never succeeds here.
      if (failures.size >= MOST_FAILURES) failures.clear()
      failures.set(subject, failure)
    }
  }
}
