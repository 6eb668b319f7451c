import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { readEnvironment } from '#lib/config/environment.ts'
import { POSTGRES_MAJOR } from '#lib/db/durable-files.ts'
import { generateIdentityKey } from '#lib/devnet/devnet.ts'
import { startLedger } from '#lib/server/ledger.ts'
import { startService } from '#lib/server/start.ts'

let directory: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'data-'))
})
afterEach(() => rm(directory, { recursive: true, force: true }))

const configuration = () =>
  readEnvironment({ DATA_DIR: directory, DEVNET_PORT: '0', RELAY_PORT: '0', DEVNET_PROOFS: 'stand-in' })

test('names DATA_DIR if another version of the service created the ledger', async () => {
  await mkdir(join(directory, 'ledger'))
  const older = { passphrase: configuration().DEVNET_PASSPHRASE, deployment: {} }
  await writeFile(join(directory, 'ledger', 'network.json'), JSON.stringify(older))
  await expect(startLedger(configuration(), await generateIdentityKey())).rejects.toThrow(
    /^DATA_DIR: the ledger in .* is older than release 1\.0\.0/,
  )
})

test('names DATA_DIR if another PostgreSQL wrote the embedded database, and leaves it as it is', async () => {
  const database = join(directory, 'database')
  await mkdir(database)
  await writeFile(join(database, 'PG_VERSION'), '17\n')
  await expect(startService(configuration())).rejects.toThrow(
    `DATA_DIR: PostgreSQL 17 wrote the database in ${database}, and this version of the service embeds PostgreSQL ${POSTGRES_MAJOR}`,
  )
  expect(await readFile(join(database, 'PG_VERSION'), 'utf8')).toBe('17\n')
})
