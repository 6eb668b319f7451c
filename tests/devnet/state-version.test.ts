import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { makeGenesis } from '#lib/devnet/apply/genesis.ts'
import { devnetKeys } from '#lib/devnet/apply/keys.ts'
import { openProofs } from '#lib/devnet/host/proofs.ts'
import { encodeData } from '#lib/devnet/state/entry.ts'

/**
 * The first ledger of each STATE_VERSION. If this fails, directories of earlier versions lack what has changed: increase
 * STATE_VERSION in lib/devnet/devnet.ts, migrate them when they are opened, and add the new digest here.
 */
const FIRST_LEDGERS = ['43d05c3dd180a666935546a882891faa36e3aa783201da8433a00cb63659e129']

test('has the first ledger of the latest state version', async () => {
  const passphrase = 'Standalone Network ; February 2017'
  const { keys, verify } = await openProofs('stand-in')
  const networkId = createHash('sha256').update(passphrase).digest()
  const context = { passphrase, networkId, sequence: 1, closeTime: 0, protocol: 28, verify } as const
  const { entries } = makeGenesis(context, devnetKeys(passphrase), keys)
  const hash = createHash('sha256')
  for (const entry of entries) hash.update(`${entry.key}:${encodeData(entry)}:${entry.liveUntil}`)
  expect(hash.digest('hex')).toBe(FIRST_LEDGERS.at(-1))
})
