import type { LaneLine } from '#lib/operator/jobs.ts'
import { Moment } from '../figures.tsx'
import { Hash } from '../hash.tsx'
import { Sign } from '../status.tsx'

const PROBLEMS = {
  account: 'It has no account on the ledger',
  registration: 'It is not registered with the token',
  sequence: 'Its sequence number has run out',
  balance: 'Its balance is too small for some items',
  history: 'Its balance cannot be read back from the ledger',
} as const satisfies Record<NonNullable<LaneLine['problem']>, string>

function LaneSign({ lane: { isRunning, problem, job, status } }: { lane: LaneLine }) {
  if (!isRunning) return <Sign tone="off">Not running</Sign>
  if (problem) return <Sign tone="bad">Held up</Sign>
  return job ? <Sign tone="busy">{status === 'taken' ? 'Building' : 'In flight'}</Sign> : <Sign tone="idle">Free</Sign>
}

/** The channels that pay side by side: what each is at, or why it is not. */
export function Lanes({ lanes, now }: { lanes: readonly LaneLine[]; now: Date }) {
  return (
    <section aria-labelledby="lanes" className="mb-8">
      <h2 id="lanes" className="mb-3 font-semibold">
        Lanes
      </h2>
      <ul className="grid gap-3 sm:grid-cols-2 lg:grid-cols-3">
        {lanes.map((lane) => (
          <li key={lane.address} className="rounded-lg border border-line bg-surface px-4 py-3 shadow-card">
            <div className="flex items-center justify-between gap-3">
              <Hash value={lane.address} />
              <LaneSign lane={lane} />
            </div>
            <p className="mt-1 text-xs text-faint">
              {lane.problem && <span className="block text-bad">{PROBLEMS[lane.problem]}</span>}
              {lane.job && lane.position !== null && (
                <span className="block">
                  transfer {lane.position + 1} of job <Hash value={lane.job} />
                </span>
              )}
              last seen <Moment at={lane.seenAt} now={now} />
            </p>
          </li>
        ))}
      </ul>
    </section>
  )
}
