import { runCommand } from '#lib/cli/process/command.ts'
import { freePort } from '../support/port.ts'
import { measureArchive } from './archive.ts'
import { measureDemo } from './demo.ts'
import { type Figure, measureDirectory } from './directory.ts'
import { measureDisclosure } from './disclosure.ts'
import { measureHostile } from './hostile.ts'
import { measureLedger } from './ledger.ts'
import { measurePayroll } from './payroll.ts'
import { measurePolling } from './polling.ts'
import { startPostgres } from './postgres.ts'
import { measureProver } from './prover.ts'
import { measureProvingRelay, measureRelay } from './relay.ts'
import { measureRequestLog } from './request-log.ts'
import { measureRuns } from './runs.ts'
import { measureScale } from './scale.ts'
import { measureSep10 } from './sep10.ts'
import { type Stage, setStage } from './stage.ts'
import { measureStart } from './start.ts'
import { type Measure, measureChain, measureCrowd } from './transfers.ts'
import { measureWriters } from './writers.ts'

/** Ratios within one run, on one machine; absolute times say little on a busy one. */
function show({ name, ours, plain, unit, goal }: Measure): void {
  const figures = `ours ${ours.toFixed(2)} ${unit}, plain loop ${plain.toFixed(2)} ${unit}`
  console.log(`${name.padEnd(46)} ${figures.padEnd(48)} ratio ${(ours / plain).toFixed(2)}  (goal: ${goal})`)
}

function tell({ name, found, goal }: Figure): void {
  console.log(`${name.padEnd(46)} ${found.padEnd(60)}  (goal: ${goal})`)
}

const tellAll = (figures: readonly Figure[]) => figures.forEach(tell)

/** Measures with a separate service and ledger. */
async function onStage(databaseUrl: string, measure: (stage: Stage) => Promise<void>): Promise<void> {
  const stage = await setStage({ DATABASE_URL: databaseUrl, SESSION_SECRET: 'a secret for one run of the benchmark' })
  try {
    await measure(stage)
  } finally {
    await stage.close()
  }
}

/** The parts of the benchmark, in their order; `npm run bench -- hostile` runs one of them alone, `-- hostile docs` one attack. */
const PARTS: Record<string, (databaseUrl: string, only?: string) => Promise<void>> = {
  'sign-in': async () => measureSep10().forEach(show),
  payers: (databaseUrl) => onStage(databaseUrl, async (stage) => (await measureCrowd(stage)).forEach(show)),
  chain: (databaseUrl) => onStage(databaseUrl, async (stage) => (await measureChain(stage)).forEach(show)),
  directory: (databaseUrl) =>
    onStage(databaseUrl, async (stage) => tellAll(await measureDirectory(stage, databaseUrl))),
  relay: async (databaseUrl) => tellAll(await measureRelay(databaseUrl)),
  'proving-relay': async (databaseUrl) => tell(await measureProvingRelay(databaseUrl)),
  runs: async (databaseUrl, only) => tellAll(await measureRuns(databaseUrl, only)),
  ledger: async () => tellAll(await measureLedger()),
  prover: async () => tellAll(await measureProver()),
  disclosure: async () => tellAll(await measureDisclosure()),
  demo: async () => tell(await measureDemo()),
  payroll: async () => tellAll(await measurePayroll()),
  polling: async (databaseUrl) => tellAll(await measurePolling(databaseUrl)),
  log: async (databaseUrl) => tell(await measureRequestLog(databaseUrl)),
  hostile: measureHostile,
  archive: async (databaseUrl) => tellAll(await measureArchive(databaseUrl)),
  start: async () => tellAll(await measureStart()),
  writers: async (databaseUrl) => tellAll(await measureWriters(databaseUrl)),
  scale: (databaseUrl, payouts) => measureScale(databaseUrl, payouts === undefined ? undefined : Number(payouts)),
}

const USAGE = `npm run bench [-- PART [ATTACK | RUN | PAYOUTS]]

Measures all parts or one, on a PostgreSQL and a ledger of its own, and holds the figures to the goals. The parts:
${Object.keys(PARTS).join(', ')}. An attack is one of hostile's, such as docs.
A run is 5, 1 or proved: over so many channels, or with real proofs. The part scale, which takes an hour with its
3,000,000 payouts, runs only if it is named.`

await runCommand({
  usage: USAGE,
  options: {},
  explain: (error) => error,
  run: async (_, [only, which]) => {
    const names = only === undefined ? Object.keys(PARTS).filter((name) => name !== 'scale') : [only]
    const postgres = await startPostgres(await freePort())
    try {
      for (const name of names) {
        const part = PARTS[name]
        if (!part) throw new Error(`no part is called ${name}; there are ${Object.keys(PARTS).join(', ')}`)
        await part(postgres.url, which)
      }
    } finally {
      await postgres.stop()
    }
  },
})
