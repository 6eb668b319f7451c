import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { constants, zstdCompressSync } from 'node:zlib'
import { openDurablePglite } from '#lib/db/durable-files.ts'
import { freePort } from '../support/port.ts'
import { startProgram } from '../support/program.ts'
import { dumpRows } from './rows.ts'
import { tellFirstPart, tellSecondPart } from './story.ts'

/** Tables that a release may leave empty: no version has removed anything yet. */
const MAY_BE_EMPTY = ['contractions']

/**
 * Writes the data of this version into `folder`: what the service keeps in DATA_DIR, and the rows of its database for a
 * PostgreSQL. Every table has rows, and a transfer, a run and a job are unfinished.
 */
export async function makeData(folder: string): Promise<void> {
  // The demo's employer is a process of its own.
  process.env.DEVNET_PROOFS = 'stand-in'
  const directory = mkdtempSync(join(tmpdir(), 'payroll-release-'))
  try {
    const unfinished = await tell(directory)
    rmSync(folder, { recursive: true, force: true })
    mkdirSync(folder, { recursive: true })
    await packDatabase(join(directory, 'database'), folder, unfinished.job)
    packLedger(directory, folder)
    for (const file of ['keys.json', 'ledger/network.json']) {
      const text = readFileSync(join(directory, file), 'utf8').trimEnd()
      writeFileSync(join(folder, file.replace('ledger/', '')), `${text}\n`)
    }
    writeFileSync(join(folder, 'unfinished.json'), `${JSON.stringify(unfinished, null, 2)}\n`)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

async function tell(directory: string) {
  const [port, devnetPort] = [await freePort(), await freePort()]
  const base = `http://localhost:${port}`
  const deploymentUrl = `http://localhost:${devnetPort}/deployment.json`
  const variables = {
    ...{ PORT: String(port), DEVNET_PORT: String(devnetPort), RELAY_PORT: '0', PUBLIC_URL: base },
    ...{ DATA_DIR: directory, DEVNET_PROOFS: 'stand-in', DEVNET_CLOSE_MS: '300' },
  }
  const { status } = spawnSync(process.execPath, ['lib/cli/seed.ts'], {
    stdio: 'inherit',
    env: { ...process.env, ...variables },
  })
  if (status !== 0) throw new Error('the database could not be seeded')
  const told = await during(base, variables, () => tellFirstPart({ base, deploymentUrl }))
  // This ledger closes 20 seconds after the start, when the process has ended.
  const slow = { ...variables, DEVNET_CLOSE_MS: '20000' }
  const open = await during(base, slow, () => tellSecondPart({ base, deploymentUrl }, told))
  return { ...told, ...open }
}

/** Runs the service, which then ends without warning. */
async function during<Told>(base: string, variables: Record<string, string>, tell: () => Promise<Told>): Promise<Told> {
  const program = await startProgram(base, variables)
  return await tell().finally(program.kill)
}

/** Repository and clones keep the data of every release. */
const pack = (content: string | Uint8Array): Uint8Array =>
  zstdCompressSync(content, {
    params: { [constants.ZSTD_c_compressionLevel]: 19, [constants.ZSTD_c_windowLog]: 27 },
  })

async function packDatabase(directory: string, folder: string, job: string): Promise<void> {
  const database = await openDurablePglite(directory)
  // The key of this job's relay is lost, and the day in which another one could have paid it is over.
  await database.query("UPDATE relay_jobs SET relay_key = 'lost' WHERE id = $1", [job])
  await database.query("UPDATE relay_lines SET queued_at = queued_at - interval '25 hours' WHERE job = $1", [job])
  await database.query(`INSERT INTO acknowledgements (condition, subject, note, operator, at, seen)
    SELECT 'payoutsFailed', id, 'their bank is told', 'Ada', now(), now() FROM batches WHERE status = 'failed' LIMIT 1`)
  const { rows: open } = await database.query<{ kind: string }>(
    "SELECT DISTINCT kind FROM transfers JOIN envelopes ON envelopes.transfer = transfers.id WHERE status = 'open' ORDER BY kind",
  )
  if (open.map(({ kind }) => kind).join() !== 'delegated,transfer')
    throw new Error(`not every kind of transfer is open: ${JSON.stringify(open)}`)
  const { sql, counts } = await dumpRows(database)
  const empty = Object.keys(counts).filter((table) => counts[table] === 0 && !MAY_BE_EMPTY.includes(table))
  if (empty.length > 0) throw new Error(`these tables have no rows: ${empty.join(', ')}`)
  writeFileSync(join(folder, 'rows.sql.zst'), pack(sql))
  await database.query('CHECKPOINT')
  const folders = await database.dumpDataDir('none')
  writeFileSync(join(folder, 'database.tar.zst'), pack(Buffer.from(await folders.arrayBuffer())))
  await database.close()
}

function packLedger(directory: string, folder: string): void {
  const ledger = new DatabaseSync(join(directory, 'ledger/ledger.sqlite'))
  const copy = join(directory, 'copy.sqlite')
  ledger.exec(`VACUUM INTO '${copy}'`)
  ledger.close()
  writeFileSync(join(folder, 'ledger.sqlite.zst'), pack(readFileSync(copy)))
}

if (import.meta.main) await makeData(process.argv[2] ?? 'release-data')
