import { type Figure, measureDirectory } from './directory.ts'
import { measureLedger } from './ledger.ts'
import { startPostgres } from './postgres.ts'
import { measureRelay } from './relay.ts'
import { measureSep10 } from './sep10.ts'
import { setStage } from './stage.ts'
import { type Measure, measureChain, measureCrowd } from './transfers.ts'

/** Ratios within one run, on one machine; absolute times say little on a busy one. */
function show({ name, ours, plain, unit, goal }: Measure): void {
  const figures = `ours ${ours.toFixed(2)} ${unit}, plain loop ${plain.toFixed(2)} ${unit}`
  console.log(`${name.padEnd(46)} ${figures.padEnd(48)} ratio ${(ours / plain).toFixed(2)}  (goal: ${goal})`)
}

function tell({ name, found, goal }: Figure): void {
  console.log(`${name.padEnd(46)} ${found.padEnd(60)}  (goal: ${goal})`)
}

/** `npm run bench -- relay` measures the relay alone. */
const isRelayOnly = process.argv.includes('relay')
if (!isRelayOnly) for (const measure of measureSep10()) show(measure)
const postgres = await startPostgres(3955)
try {
  if (!isRelayOnly) await measureService(postgres.url)
  for (const figure of await measureRelay(postgres.url)) tell(figure)
  for (const figure of await measureLedger()) tell(figure)
} finally {
  await postgres.stop()
}

async function measureService(databaseUrl: string): Promise<void> {
  const stage = await setStage({ DATABASE_URL: databaseUrl, SESSION_SECRET: 'a secret for one run of the benchmark' })
  try {
    for (const measure of await measureCrowd(stage)) show(measure)
    for (const measure of await measureChain(stage)) show(measure)
    for (const figure of await measureDirectory(stage, databaseUrl)) tell(figure)
  } finally {
    await stage.close()
  }
}
