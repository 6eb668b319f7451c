import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { Keypair } from '@stellar/stellar-sdk'
import { expect, onTestFinished, test } from 'vitest'
import { startTestLedger } from '../support/test-ledger.ts'

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

test('the wallet command registers an account of one’s own, once', async () => {
  const ledger = await startTestLedger({ closeMs: 200 })
  onTestFinished(() => ledger.close())
  const signer = Keypair.random()
  await fetch(`${ledger.devnet.friendbotUrl}?addr=${signer.publicKey()}`)
  const network = `${ledger.devnet.url}/deployment.json`
  const register = (key: Keypair) => {
    const where = ['--network', network, '--service', 'http://127.0.0.1:1']
    return run(process.execPath, ['lib/cli/wallet.ts', 'register', '--secret', key.secret(), ...where], {
      env: { ...process.env, DEVNET_PROOFS: 'stand-in' },
    })
  }
  expect((await register(signer)).stdout).toBe(`${signer.publicKey()} is registered: it can be paid\n`)
  await expect(register(signer)).rejects.toMatchObject({
    stderr: expect.stringContaining('is registered with the token already: its keys cannot be changed'),
  })
  await expect(register(Keypair.random())).rejects.toMatchObject({ stderr: expect.stringContaining('fund it first') })
})
