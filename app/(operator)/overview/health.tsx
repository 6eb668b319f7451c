import type { Readiness } from '#lib/server/readiness.ts'
import { groupDigits } from '#lib/text/figures.ts'
import { Sign } from '../status.tsx'

type Light = readonly [tone: 'good' | 'busy' | 'bad' | 'off', word: string, detail: string]

interface HealthProps {
  ready: Readiness
  embedsDatabase: boolean
  /** whether the service runs its relay itself and has only just started */
  startsRelay: boolean
}

/** The parts that the service depends on, and whether each can be reached. */
export function Health({ ready, embedsDatabase, startsRelay }: HealthProps) {
  const { database, ledger, sponsor, relay, archive } = ready
  const lights: [string, Light][] = [
    [
      'Database',
      database.ok
        ? ['good', 'Reachable', embedsDatabase ? 'PGlite, embedded' : 'PostgreSQL']
        : ['bad', 'Unreachable', 'retrying every 5 s'],
    ],
    [
      'Ledger',
      ledger.ok
        ? ['good', 'Following', `ledger ${groupDigits(Number(ledger.latestLedger))}, ${ledger.age} s ago`]
        : ['bad', ledger.age === undefined ? 'Unreachable' : 'Behind', `${ledger.problem}`],
    ],
    ['Sponsor', sponsorLight(sponsor)],
    ['Archive', archiveLight(archive)],
    ['Relay', relayLight(relay, { embedsDatabase, startsRelay })],
  ]
  return (
    <section aria-label="Health" className="mb-6">
      <dl className="rounded-lg border border-line bg-surface shadow-card max-sm:divide-y sm:grid sm:grid-cols-3 lg:grid-cols-5 lg:divide-x divide-line">
        {lights.map(([name, [tone, word, detail]]) => (
          <div key={name} className="flex flex-wrap items-baseline gap-x-2 px-4 py-1.5 sm:block sm:py-2.5">
            <dt className="min-w-16 text-xs text-faint">{name}</dt>
            <dd className="flex min-w-0 flex-1 flex-wrap items-baseline gap-x-2 sm:block">
              <span className="font-medium">
                <Sign tone={tone}>{word}</Sign>
              </span>
              <span className="block text-xs text-faint [overflow-wrap:anywhere]">{detail}</span>
            </dd>
          </div>
        ))}
      </dl>
    </section>
  )
}

function sponsorLight(sponsor: Readiness['sponsor']): Light {
  if (sponsor.configured === false) return ['off', 'Off', `${sponsor.problem ?? 'set SPONSOR_SEED to pay fees'}`]
  return sponsor.ok ? ['good', 'Paying', 'float is sufficient'] : ['bad', 'Cannot pay', `${sponsor.problem}`]
}

function archiveLight(archive: Readiness['archive']): Light {
  const { ok, configured, ingestedThrough, finalThrough, behind, gaps, problem } = archive
  if (configured === false) return ['off', 'Off', 'set CONFIDENTIAL_TOKEN to keep its events']
  if (behind === undefined) return ['bad', 'Unreachable', `${problem}`]
  if (!ok) return ['bad', ingestedThrough === undefined ? 'Not started' : 'Far behind', `${problem}`]
  if (ingestedThrough === undefined) return ['busy', 'Starting', `${problem}`]
  const readTwice = finalThrough ? `, last read twice: ${groupDigits(Number(finalThrough))}` : ''
  const through = `through ledger ${groupDigits(Number(ingestedThrough))}${readTwice}`
  return gaps ? ['bad', 'Incomplete', `${through}; ${problem}`] : ['good', 'Complete', through]
}

function relayLight(
  { configured, ok, channels, problem }: Readiness['relay'],
  { embedsDatabase, startsRelay }: Omit<HealthProps, 'ready'>,
): Light {
  if (configured === false) return ['off', 'Off', 'batch execution is disabled']
  if (channels === undefined) return ['off', 'Unknown', 'the database is unreachable']
  // A starting relay first creates and funds its channels' accounts.
  if (startsRelay && (channels === 0 || !ok)) return ['busy', 'Starting', 'soon after the service']
  // With an embedded database, only the service can start a relay.
  if (channels === 0) return ['bad', 'None running', embedsDatabase ? 'see the log' : 'start one: npm run relay']
  const count = channels === 1 ? 'one channel' : `${channels} channels`
  if (problem === undefined) return ['good', 'Running', count]
  const shortened = String(problem).replace(/\b([A-Z2-7]{4})[A-Z2-7]{48}([A-Z2-7]{4})\b/g, '$1…$2')
  return ok ? ['busy', 'Running', `${count}; ${shortened}`] : ['bad', 'Cannot pay', shortened]
}
