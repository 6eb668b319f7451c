import { setImmediate } from 'node:timers/promises'
import { Account, Asset, StrKey } from '@stellar/stellar-sdk'
import { expect, test } from 'vitest'
import { NETWORK_LEDGER_LIMITS } from '#lib/devnet/devnet.ts'
import { openFriendbot } from '#lib/devnet/services/friendbot.ts'
import { keypair, openBareLedger, openTestNetwork, passphrase, root, shareNetwork } from './network-fixture.ts'

const network = shareNetwork({ closeMs: 50, now: Date.now })
const XLM_10_000 = 100_000_000_000n
const ask = (query: string, init?: RequestInit) => fetch(`${network.devnet.friendbotUrl}${query}`, init)

test("serves the SDK's requestAirdrop, which creates an account and returns its sequence number", async () => {
  const account = keypair('airdrop')
  const created = await network.server.requestAirdrop(account.publicKey())
  expect(created).toBeInstanceOf(Account)
  const entry = await network.account(account)
  expect(entry.balance).toBe(XLM_10_000)
  expect(created.sequenceNumber()).toBe(String(entry.seqNum))
})

test("serves the SDK's fundAddress, which funds accounts and contracts", async () => {
  const account = keypair('funded')
  expect((await network.server.fundAddress(account.publicKey())).status).toBe('SUCCESS')
  const { token } = network.devnet.deployment.contracts
  expect((await network.server.fundAddress(token)).status).toBe('SUCCESS')
  const balance = await network.server.getSACBalance(token, Asset.native(), passphrase)
  expect(balance.balanceEntry?.amount).toBe(String(XLM_10_000))
})

test('funds twenty accounts concurrently', async () => {
  const accounts = Array.from({ length: 20 }, (_, index) => keypair(`one of twenty ${index}`))
  const answers = await Promise.all(accounts.map((account) => ask(`?addr=${account.publicKey()}`)))
  const bodies = await Promise.all(answers.map((answer) => answer.json()))
  expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(200))
  const outcomes = await Promise.all(bodies.map(({ hash }) => network.server.getTransaction(hash)))
  expect(new Set(outcomes.map(({ status }) => status))).toEqual(new Set(['SUCCESS']))
  const entries = await Promise.all(accounts.map((account) => network.account(account)))
  expect(new Set(entries.map(({ balance }) => balance))).toEqual(new Set([XLM_10_000]))
})

test('creates an account once when two requests arrive in one ledger', async () => {
  const ledger = openBareLedger()
  const fund = openFriendbot(ledger, root)
  const both = Promise.allSettled([0, 1].map(() => fund(keypair('raced').publicKey())))
  await setImmediate()
  ledger.close()
  const outcomes = (await both).toSorted((left, right) => (left.status < right.status ? -1 : 1))
  expect(outcomes[0]?.status).toBe('fulfilled')
  expect(outcomes[1]).toMatchObject({
    reason: { name: 'FundingRefused', message: expect.stringMatching(/^createAccountAlreadyExist \(AAAA.+\)$/) },
  })
  ledger.stop()
})

test('pays a contract with a contract call, and responds 503 while the queue is full', async () => {
  const { soroban } = NETWORK_LEDGER_LIMITS
  // Room for two calls in the queue.
  const limits = { ...NETWORK_LEDGER_LIMITS, soroban: { ...soroban, operations: 1 } }
  const narrow = await openTestNetwork({ limits })
  try {
    const addresses = [1, 2, 3].map((byte) => StrKey.encodeContract(new Uint8Array(32).fill(byte)))
    const responses = addresses.map((address) => fetch(`${narrow.devnet.friendbotUrl}?addr=${address}`))
    const refused = await Promise.race(responses)
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '5'])
    expect(await refused.json()).toMatchObject({ detail: 'The network has no room for the transaction.' })
    const closing = setInterval(narrow.close, 20)
    const answers = await Promise.all(responses).finally(() => clearInterval(closing))
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 200, 503])
  } finally {
    await narrow.stop()
  }
})

test('rejects an account that has enough, and invalid addresses', async () => {
  const account = keypair('rich').publicKey()
  expect((await ask(`?addr=${account}`)).status).toBe(200)
  const again = await ask(`?addr=${account}`)
  expect([again.status, (await again.json()).detail]).toEqual([400, 'account already funded to starting balance'])
  for (const query of ['', '?addr=', '?addr=GABC', '?addr=M123']) {
    const bad = await ask(query)
    expect(bad.status).toBe(400)
    expect(await bad.json()).toMatchObject({
      detail: 'The request you sent was invalid in some way.',
      extras: { invalid_field: 'addr' },
    })
  }
  expect((await ask(`?addr=${account}`, { method: 'PUT' })).status).toBe(405)
})

test('accepts the address in a form', async () => {
  const addr = keypair('by form').publicKey()
  const answer = await ask('', { method: 'POST', body: new URLSearchParams({ addr }) })
  expect(await answer.json()).toMatchObject({
    successful: true,
    hash: expect.any(String),
    envelope_xdr: expect.any(String),
  })
})
