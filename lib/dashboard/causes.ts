import type { Notice } from './attention.ts'
import type { Cause } from './explanation.ts'

/** Some payments that failed for the same reason. */
export interface FailedFor extends Cause {
  count: number
}

type Step = Pick<Notice, 'actor' | 'remedy' | 'request' | 'asksToPay'>

const CAUSES_SHOWN = 3

/** The reasons of several failures, the most frequent first: '3: the proof does not match the balance; 1: it expired'. */
export function describeCauses(failures: readonly FailedFor[]): string {
  const causes = countBy(failures, ({ meaning }) => meaning)
  if (causes.length === 1) return failures[0]?.meaning ?? ''
  const others = causes.slice(CAUSES_SHOWN).reduce((sum, [, count]) => sum + count, 0)
  return [
    ...causes.slice(0, CAUSES_SHOWN).map(([meaning, count]) => `${count}: ${meaning || 'no reason is known'}`),
    ...(others === 0 ? [] : [`${others}: other reasons`]),
  ].join('; ')
}

/**
 * The next step after failures: first what removes their causes, and then what the employer pays again, and how.
 * @param again what the employer does, such as 'send the 3 failed payouts again'
 * @param words.sample which of them `failures` are, if not all: 'of the last 200'
 * @param words.note a sentence that the employer has to know
 */
export function stepAfter(
  failures: readonly FailedFor[],
  again: string,
  { sample, note = '' }: { sample?: string | undefined; note?: string } = {},
): Step {
  const ways = countBy(failures, ({ advice }) => advice.again).map(([way, count]) => [way(count), count] as const)
  const [only, ...others] = ways
  const list = ways.map(([way, count]) => `${count}${way || ' as before'}`).join('; ')
  const how = others.length === 0 ? only?.[0] : `${sample ? `, ${sample}` : ''}: ${list}`
  const step = `${again}${how ?? ''}`
  const first = [...new Set(failures.flatMap(({ advice }) => advice.first ?? []))]
  const also = [...new Set(failures.flatMap(({ advice }) => advice.also ?? []))].map((one) => ` ${one}.`).join('')
  const ask = askTo(step, note)
  if (first.length === 0)
    return { ...ask, actor: also === '' ? 'employer' : 'operator', remedy: `${ask.remedy}${also}` }
  return {
    asksToPay: true,
    actor: 'operator',
    remedy: `${first.join('; ')}; then ask the employer to ${step}.${note}${also}`,
    request: `The cause has been removed. Please open your payroll application and ${step}.${note}`,
  }
}

/** A step that the employer alone can take. */
export const askTo = (step: string, note = ''): Step => ({
  asksToPay: true,
  actor: 'employer',
  remedy: `Ask the employer to ${step}.${note}`,
  request: `Please open your payroll application and ${step}.${note}`,
})

/** Counts failures by what they have in common, the largest count first. */
function countBy<Key>(failures: readonly FailedFor[], keyOf: (failure: FailedFor) => Key): [Key, number][] {
  return [...Map.groupBy(failures, keyOf)]
    .map(([key, same]): [Key, number] => [key, same.reduce((sum, { count }) => sum + count, 0)])
    .toSorted(([, one], [, other]) => other - one)
}
