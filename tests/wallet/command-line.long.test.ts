import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { Keypair } from '@stellar/stellar-sdk'
import { expect, test } from 'vitest'

const run = promisify(execFile)
const wallet = (...args: string[]) => run(process.execPath, ['lib/cli/wallet.ts', ...args])

test.each([[[]], [['bogus']]])('lists the commands if none matches %j', async (args) => {
  await expect(wallet(...args)).rejects.toMatchObject({ code: 1, stderr: expect.stringMatching(/^Usage: /) })
})

test('the wallet command names a bound on fees that is no amount', async () => {
  const secret = Keypair.fromRawEd25519Seed(new Uint8Array(32).fill(7)).secret()
  await expect(wallet('merge', '--secret', secret, '--max-fee', 'much')).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^--max-fee is not an amount of XLM/),
  })
})

test('the wallet command names the missing option', async () => {
  await expect(wallet('address')).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^--secret is missing/),
  })
})
