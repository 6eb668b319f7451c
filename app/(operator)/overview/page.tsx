import { listMovingBatches } from '#lib/dashboard/batches.ts'
import { listChannels } from '#lib/dashboard/channels.ts'
import { readAttention } from '#lib/dashboard/overview.ts'
import { readIfReachable } from '#lib/dashboard/reading.ts'
import { readSpending } from '#lib/dashboard/spending.ts'
import { type Range, readTraffic } from '#lib/dashboard/traffic.ts'
import type { Database } from '#lib/db/connection.ts'
import { foundProblems, readiness } from '#lib/server/readiness.ts'
import { serviceAttention } from '#lib/server/service-attention.ts'
import type { Service } from '#lib/server/services.ts'
import { readVault } from '#lib/server/vault-reading.ts'
import { readStop } from '#lib/transfers/stop.ts'
import { Frame } from '../frame.tsx'
import { addressOf, readQuery } from '../query.ts'
import { ApiReference } from '../record-links.tsx'
import { requireOperator } from '../require-operator.ts'
import { Unreachable } from '../table.tsx'
import { Tabs } from '../tabs.tsx'
import { AttentionList } from './attention-list.tsx'
import { Health } from './health.tsx'
import { MovingBatches } from './moving-batches.tsx'
import { NotConfigured } from './not-configured.tsx'
import { SettlementChart } from './settlement-chart.tsx'
import { SpendingCards } from './spending-cards.tsx'
import { TrafficChart } from './traffic-chart.tsx'

export const metadata = { title: 'Overview' }

/** How long after the service starts its relay may take to report. */
const RELAY_START_SECONDS = 60

const MOVING_SHOWN = 20

/** The overview: the health of the service and the items that need attention, then the work in progress, then figures and charts. */
export default async function OverviewPage({ searchParams }: PageProps<'/overview'>) {
  const query = await readQuery(searchParams)
  const service = await requireOperator(addressOf('/overview', query))
  const now = service.now()
  const range: Range = query.range === '30d' ? '30d' : '24h'
  const { settings, sponsor } = service
  const startsRelay = settings.embedsDatabase && settings.relay !== undefined && process.uptime() < RELAY_START_SECONDS
  const [ready, vault, figures] = await Promise.all([
    readiness(service),
    readVault(service),
    readIfReachable(service.database, (db) => readFigures(db, service, now, range)),
  ])
  const limits = sponsor?.limits
  const network = settings.network.name
  const { spending, channels = [], stop, attention, moving, traffic } = figures ?? {}
  const problems = foundProblems(service)
  const startedAt = new Date(now.getTime() - process.uptime() * 1_000)
  const ofService = serviceAttention({
    ...{ ready, problems, settings, spending, limits, channels, stop, startsRelay, startedAt, now },
  })
  return (
    <Frame here="/overview" title="Overview" network={network}>
      <Health ready={ready} embedsDatabase={settings.embedsDatabase} startsRelay={startsRelay} />
      {figures && isUnused(figures) && <FirstSteps network={network} />}
      <AttentionList
        items={[...ofService, ...(attention?.items ?? [])]}
        otherFailedBatches={attention?.otherFailedBatches ?? 0}
        network={network}
        now={now}
      />
      {moving && <MovingBatches {...moving} now={now} />}
      {traffic ? (
        <>
          <SpendingCards spending={spending} vault={vault} ready={ready} limits={limits} network={network} />
          <div className="mt-8">
            <Tabs
              label="Time shown"
              path="/overview"
              name="range"
              query={{ range: range === '24h' ? '' : range }}
              tabs={[
                ['', '24 hours'],
                ['30d', '30 days'],
              ]}
            />
          </div>
          <div className="grid items-start gap-4 xl:grid-cols-2">
            <TrafficChart traffic={traffic} />
            <SettlementChart traffic={traffic} />
          </div>
        </>
      ) : (
        <Unreachable />
      )}
      <NotConfigured settings={settings} />
    </Frame>
  )
}

type Figures = Awaited<ReturnType<typeof readFigures>>

async function readFigures(db: Database, { sponsor, settings }: Service, now: Date, range: Range) {
  const payer = sponsor?.keypair.publicKey()
  const { token } = settings
  const moving = await listMovingBatches(db, MOVING_SHOWN)
  const [spending, traffic, attention, channels, stop] = await Promise.all([
    payer === undefined ? undefined : readSpending(db, payer, now),
    readTraffic(db, now, range),
    readAttention(db, now),
    token === undefined ? [] : listChannels(db, token, now),
    token === undefined ? undefined : readStop(db, token),
  ])
  return { spending, traffic, attention, moving, channels, stop }
}

/** Whether the page shows no use of the sponsor at all. */
function isUnused({ traffic, moving }: Figures): boolean {
  return moving.total === 0 && traffic.parts.every(({ succeeded, failed, open }) => succeeded + failed + open === 0)
}

function FirstSteps({ network }: { network: string }) {
  return (
    <p className="mb-6 rounded-lg bg-accent-wash px-4 py-3 sm:px-5">
      No recent payments.{' '}
      {network === 'local' && (
        <>
          To see an example payroll, run <code>npm run demo</code>.{' '}
        </>
      )}
      To create a payroll, start with the <ApiReference className="text-accent underline underline-offset-4" />.
    </p>
  )
}
