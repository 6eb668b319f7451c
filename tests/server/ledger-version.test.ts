import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { OTHER_VERSION } from '#lib/config/data-directory.ts'
import { readEnvironment } from '#lib/config/environment.ts'
import { generateIdentityKey } from '#lib/devnet/devnet.ts'
import { startLedger } from '#lib/server/ledger.ts'

test('names DATA_DIR if another version of the service created the ledger', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'ledger-'))
  onTestFinished(() => rm(directory, { recursive: true, force: true }))
  const configuration = readEnvironment({ DATA_DIR: directory, DEVNET_PORT: '0', DEVNET_PROOFS: 'stand-in' })
  await mkdir(join(directory, 'ledger'))
  const older = { passphrase: configuration.DEVNET_PASSPHRASE, deployment: {} }
  await writeFile(join(directory, 'ledger', 'network.json'), JSON.stringify(older))
  await expect(startLedger(configuration, await generateIdentityKey())).rejects.toThrow(`DATA_DIR: ${OTHER_VERSION}`)
})
