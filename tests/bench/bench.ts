import { type Figure, measureDirectory } from './directory.ts'
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

for (const measure of measureSep10()) show(measure)
const postgres = await startPostgres(3955)
try {
  const stage = await setStage({
    DATABASE_URL: postgres.url,
    SESSION_SECRET: 'a secret for one run of the benchmark',
  })
  try {
    for (const measure of await measureCrowd(stage)) show(measure)
    for (const measure of await measureChain(stage)) show(measure)
    for (const figure of await measureDirectory(stage, postgres.url)) tell(figure)
  } finally {
    await stage.close()
  }
  for (const figure of await measureRelay(postgres.url)) tell(figure)
} finally {
  await postgres.stop()
}
