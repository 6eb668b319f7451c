import type { Route } from 'next'
import Link from 'next/link'
import type { Trouble } from '#lib/operator/troubles.ts'
import { Moment } from '../figures.tsx'
import { Hash } from '../hash.tsx'
import { Status } from '../status.tsx'

/** What failed, expired or was refused lately, and why. */
export function Troubles({ troubles, now }: { troubles: readonly Trouble[]; now: Date }) {
  return (
    <section aria-labelledby="troubles">
      <div className="mb-2 flex items-baseline justify-between gap-4">
        <h2 id="troubles" className="font-semibold">
          What failed lately
        </h2>
        <Link
          href={'/transfers?view=refused' as Route}
          prefetch={false}
          className="text-[0.8125rem] text-soft underline-offset-4 hover:underline"
        >
          All refusals
        </Link>
      </div>
      {troubles.length === 0 ? (
        <p className="border-t border-line pt-3 text-soft">Nothing has failed or been refused.</p>
      ) : (
        <ul className="divide-y divide-line border-t border-line">
          {troubles.map(({ id, at, kind, account, why }) => (
            <li key={id} className="py-2.5">
              <div className="flex flex-wrap items-baseline gap-x-4 gap-y-0.5">
                <Status of="transfer" is={kind} />
                <Hash value={account} />
                <span className="ml-auto text-xs text-faint">
                  <Moment at={at} now={now} />
                </span>
              </div>
              <p className="mt-0.5 text-[0.8125rem] text-soft">{why || 'The ledger gave no reason'}</p>
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}
