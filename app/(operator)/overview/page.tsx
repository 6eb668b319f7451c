import type { Metadata, Route } from 'next'
import Link from 'next/link'
import { type BatchLine, listRunningBatches } from '#lib/operator/batches.ts'
import { readIfReachable } from '#lib/operator/reading.ts'
import { readSpending } from '#lib/operator/spending.ts'
import { readTraffic, type TrafficHour } from '#lib/operator/traffic.ts'
import { listTroubles } from '#lib/operator/troubles.ts'
import { readiness } from '#lib/server/readiness.ts'
import type { Service } from '#lib/server/services.ts'
import { Frame } from '../frame.tsx'
import { requireOperator } from '../require-operator.ts'
import { Unreachable } from '../table.tsx'
import { Health } from './health.tsx'
import { NotConfigured } from './not-configured.tsx'
import { RunningBatches } from './running-batches.tsx'
import { SettlementChart } from './settlement-chart.tsx'
import { SpendingCards } from './spending-cards.tsx'
import { TrafficChart } from './traffic-chart.tsx'
import { Troubles } from './troubles.tsx'
import { readVault } from './vault-reading.ts'

export const metadata: Metadata = { title: 'Overview' }

/** Whether payroll flows, what the sponsor spends, and what failed lately. */
/** How long the service may take until its own relay is heard of. */
const RELAY_START_SECONDS = 60

export default async function OverviewPage() {
  const service = await requireOperator('/overview')
  const now = service.now()
  const { embedsDatabase, relay } = service.settings
  const startsRelay = embedsDatabase && relay !== undefined && process.uptime() < RELAY_START_SECONDS
  const [ready, vault, figures] = await Promise.all([
    readiness(service),
    readVault(service),
    readIfReachable(service.database, (db) => readFigures(db, service, now)),
  ])
  return (
    <Frame here="/overview" title="Overview" network={service.settings.network.name}>
      <Health ready={ready} embedsDatabase={embedsDatabase} startsRelay={startsRelay} />
      {figures ? (
        <>
          {isQuiet(figures) && <FirstSteps network={service.settings.network.name} />}
          <SpendingCards spending={figures.spending} vault={vault} ready={ready} limits={service.sponsor?.limits} />
          <div className="mt-4 grid gap-4 xl:grid-cols-2">
            <TrafficChart traffic={figures.traffic} />
            <SettlementChart traffic={figures.traffic} />
          </div>
          <div className="mt-8 grid gap-x-8 gap-y-8 xl:grid-cols-2">
            <Troubles troubles={figures.troubles} now={now} />
            <RunningBatches batches={figures.running} now={now} />
          </div>
        </>
      ) : (
        <Unreachable />
      )}
      <NotConfigured settings={service.settings} />
    </Frame>
  )
}

/** Nothing was ever asked of the sponsor, as far as the page can tell. */
function isQuiet({ traffic, troubles, running }: Figures): boolean {
  return troubles.length === 0 && running.length === 0 && traffic.hours.every(isEmptyHour)
}

const isEmptyHour = ({ succeeded, failed, open }: TrafficHour) => succeeded + failed + open === 0

function FirstSteps({ network }: { network: string }) {
  return (
    <p className="mb-4 rounded-lg bg-accent-wash px-4 py-3 sm:px-5">
      Nothing has been paid in the last 24 hours.{' '}
      {network === 'local' && (
        <>
          To see a payroll go through, run <code>npm run demo</code>.{' '}
        </>
      )}
      To make one of your own, start with the{' '}
      <Link href={'/docs' as Route} prefetch={false} className="text-accent underline underline-offset-4">
        API reference
      </Link>
      .
    </p>
  )
}

interface Figures {
  spending: Awaited<ReturnType<typeof readSpending>> | undefined
  traffic: Awaited<ReturnType<typeof readTraffic>>
  troubles: Awaited<ReturnType<typeof listTroubles>>
  running: BatchLine[]
}

async function readFigures(db: Parameters<typeof readTraffic>[0], service: Service, now: Date): Promise<Figures> {
  const sponsor = service.sponsor?.keypair.publicKey()
  const [spending, traffic, troubles, running] = await Promise.all([
    sponsor === undefined ? undefined : readSpending(db, sponsor, now),
    readTraffic(db, now),
    listTroubles(db, 5),
    listRunningBatches(db, 5),
  ])
  return { spending, traffic, troubles, running }
}
