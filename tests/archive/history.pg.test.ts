import { Account, Address, nativeToScVal, Operation, TransactionBuilder, xdr } from '@stellar/stellar-sdk'
import { describe, expect, test } from 'vitest'
import { archivePayloads } from '#drizzle/schema/archive.ts'
import { readCheckpoint } from '#lib/archive/checkpoint.ts'
import {
  type Archive,
  openArchive,
  readAccountEvents,
  readRegistryEvents,
  readTokenEvents,
  readTransactionEvents,
} from '#lib/archive/history.ts'
import { ingest } from '#lib/archive/ingest.ts'
import { accountAt, CONTRACTS } from '../support/event-rpc.ts'
import { context, db, fake, serveFakeArchive } from './fake-archive.ts'

const PASSPHRASE = 'Standalone Network ; February 2017'
const [OWNER, SPENDER, PAYEE, STRANGER] = [0, 1, 2, 3].map(accountAt) as [string, string, string, string]

serveFakeArchive()

/** Ingests until the ledgers that the network has closed now were read twice. */
async function readTwice(): Promise<Archive> {
  await ingested()
  fake.latestLedger += 75
  return await ingested()
}

async function ingested(): Promise<Archive> {
  await ingest(context)
  const archive = await openArchive(db, CONTRACTS.token)
  if (!archive) throw new Error('nothing is archived')
  return archive
}

const everything = ({ firstLedger, ingestedThrough }: Archive) => ({
  fromLedger: firstLedger,
  toLedger: ingestedThrough,
  after: undefined,
  limit: 1_000,
})

describe('the events of an account', () => {
  test('include each event once if any of its topics names the account', async () => {
    fake.add(2, 'register', [OWNER])
    fake.add(3, 'transfer', [OWNER, PAYEE])
    fake.add(4, 'transfer', [OWNER, OWNER])
    fake.add(5, 'spender_transfer', [SPENDER, OWNER, PAYEE])
    fake.add(6, 'revoke_spender', [OWNER, SPENDER])
    fake.add(7, 'transfer', [PAYEE, STRANGER])
    const archive = await ingested()
    const typesOf = async (account: string) =>
      (await readAccountEvents(db, archive, account, everything(archive))).events.map(({ type }) => type)
    expect(await typesOf(OWNER)).toEqual(['register', 'transfer', 'transfer', 'spender_transfer', 'revoke_spender'])
    expect(await typesOf(SPENDER)).toEqual(['spender_transfer', 'revoke_spender'])
    expect(await typesOf(PAYEE)).toEqual(['transfer', 'spender_transfer', 'transfer'])
    expect(await typesOf(STRANGER)).toEqual(['transfer'])
  })

  test('are returned page by page, each once, without a cursor on the last page', async () => {
    for (let index = 0; index < 250; index += 1) fake.add(2 + index, 'transfer', [OWNER, PAYEE])
    const archive = await ingested()
    const seen: string[] = []
    let after: string | undefined
    for (;;) {
      const page = await readAccountEvents(db, archive, OWNER, { ...everything(archive), limit: 60, after })
      seen.push(...page.events.map(({ id }) => id))
      if (page.cursor === null) break
      after = page.cursor
    }
    expect(seen).toEqual(fake.events.map(({ id }) => id))
  })

  test('are limited to the requested ledgers and types', async () => {
    for (let ledger = 2; ledger < 12; ledger += 1) fake.add(ledger, ledger % 2 ? 'deposit' : 'transfer', [OWNER, PAYEE])
    const archive = await ingested()
    const query = { ...everything(archive), fromLedger: 4, toLedger: 8 }
    const ledgersOf = async (types?: string[]) =>
      (await readAccountEvents(db, archive, OWNER, { ...query, types })).events.map(({ ledger_seq }) => ledger_seq)
    expect(await ledgersOf()).toEqual([4, 5, 6, 7, 8])
    expect(await ledgersOf(['deposit'])).toEqual([5, 7])
  })
})

describe('a checkpoint', () => {
  test('is the last event with the whole spendable balance, and its anchor the last merge before it', async () => {
    fake.add(2, 'register', [OWNER])
    fake.add(3, 'transfer', [PAYEE, OWNER])
    fake.add(4, 'merge', [OWNER])
    fake.add(5, 'transfer', [PAYEE, OWNER])
    fake.add(6, 'transfer', [OWNER, PAYEE])
    fake.add(7, 'merge', [OWNER])
    fake.add(8, 'deposit', [STRANGER, OWNER])
    const archive = await ingested()
    const at = (ledger: number) => readCheckpoint(db, archive, OWNER, ledger)
    expect(await at(8)).toMatchObject({
      event: { type: 'transfer', ledger_seq: 6 },
      anchor: { type: 'merge', ledger_seq: 4 },
      complete: true,
    })
    expect(await at(5)).toMatchObject({ event: null, anchor: { type: 'register', ledger_seq: 2 }, complete: true })
    expect(await readCheckpoint(db, archive, STRANGER, 8)).toEqual({ event: null, anchor: null, complete: false })
  })

  test('is anchored in the registration before the first merge', async () => {
    fake.add(2, 'register', [OWNER])
    fake.add(3, 'withdraw', [OWNER, STRANGER])
    const archive = await ingested()
    expect(await readCheckpoint(db, archive, OWNER, 3)).toMatchObject({
      event: { type: 'withdraw' },
      anchor: { type: 'register' },
    })
  })

  test('is incomplete where ledgers after it are missing', async () => {
    fake.add(2, 'register', [OWNER])
    fake.add(3, 'set_spender', [OWNER, SPENDER])
    await ingested()
    fake.latestLedger = 90
    fake.oldestLedger = 50
    const archive = await ingested()
    expect(await readCheckpoint(db, archive, OWNER, 3)).toMatchObject({ complete: true })
    expect(await readCheckpoint(db, archive, OWNER, 80)).toMatchObject({ event: { ledger_seq: 3 }, complete: false })
  })
})

test('returns all events of a transaction, even if other ledgers are missing', async () => {
  const hash = fake.add(2, 'transfer', [OWNER, PAYEE])
  await ingested()
  fake.latestLedger = 90
  fake.oldestLedger = 50
  const archive = await ingested()
  expect(await readTransactionEvents(db, archive, hash)).toMatchObject({
    events: [{ type: 'transfer', tx_hash: hash }],
    complete: true,
  })
  expect(await readTransactionEvents(db, archive, '0'.repeat(64))).toMatchObject({ events: [], complete: false })
})

test('does not call a transaction complete that may be above the ingested ledgers', async () => {
  fake.add(2, 'transfer', [OWNER, PAYEE])
  const archive = await ingested()
  expect(await readTransactionEvents(db, archive, '0'.repeat(64))).toMatchObject({ events: [], complete: false })
})

test('keeps a separate stream for the registries', async () => {
  fake.add(2, 'auditor_set', [CONTRACTS.auditor])
  fake.add(3, 'rotate_key', [], CONTRACTS.auditor)
  fake.add(4, 'verifier_set', [CONTRACTS.verifier])
  fake.add(5, 'register_key', [], CONTRACTS.verifier)
  await ingest(context)
  const archive = await ingested()
  const { events, complete } = await readRegistryEvents(db, archive, everything(archive))
  expect(events.map(({ type, contract_id }) => [type, contract_id])).toEqual([
    ['rotate_key', CONTRACTS.auditor],
    ['register_key', CONTRACTS.verifier],
  ])
  expect(complete).toBe(true)
  const own = await readTokenEvents(db, archive, everything(archive))
  expect(own.events.map(({ type }) => type)).toEqual(['auditor_set', 'verifier_set'])
})

test('a registry that was named late does not make an earlier one incomplete', async () => {
  fake.add(2, 'auditor_set', [CONTRACTS.auditor])
  fake.add(3, 'rotate_key', [], CONTRACTS.auditor)
  fake.latestLedger = 100
  await ingest(context)
  await ingest(context)
  fake.oldestLedger = 50
  fake.add(101, 'verifier_set', [CONTRACTS.verifier])
  await ingest(context)
  await ingest(context)
  const archive = await ingested()
  const completeOf = async (registry?: string) =>
    (await readRegistryEvents(db, archive, everything(archive), registry)).complete
  expect(await completeOf(CONTRACTS.auditor)).toBe(true)
  expect(await completeOf(CONTRACTS.verifier)).toBe(false)
  expect(await completeOf(CONTRACTS.token)).toBe(false)
  expect(await completeOf()).toBe(false)
})

describe('payloads', () => {
  const KEY = Buffer.alloc(64, 7)
  const struct = (fields: Record<string, xdr.ScVal>) =>
    xdr.ScVal.scvMap(
      Object.entries(fields).map(([name, val]) => new xdr.ScMapEntry({ key: xdr.ScVal.scvSymbol(name), val })),
    )
  const bytes = (content: Uint8Array) => xdr.ScVal.scvBytes(content)
  const [SIGMA, OTHER] = [32, 33].map((byte) => bytes(Buffer.alloc(32, byte))) as [xdr.ScVal, xdr.ScVal]
  const DATA = struct({ r_e_point: bytes(KEY), sigma: SIGMA })
  const payloadWith = (fields: Record<string, xdr.ScVal>) =>
    struct({ a_tilde: OTHER, r_e_point: bytes(KEY), sigma: SIGMA, ...fields })
  const PAYLOAD = payloadWith({})
  const dataOf = (payload: xdr.ScVal) => bytes(struct({ payload, proof: bytes(new Uint8Array(14_592)) }).toXdr())
  const call = (contract: string, name: string, args: xdr.ScVal[], sub: xdr.SorobanAuthorizedInvocation[] = []) =>
    new xdr.SorobanAuthorizedInvocation({
      function: xdr.SorobanAuthorizedFunction.sorobanAuthorizedFunctionTypeContractFn(
        new xdr.InvokeContractArgs({
          contractAddress: new Address(contract).toScAddress(),
          functionName: name,
          args,
        }),
      ),
      subInvocations: sub,
    })

  /** A signed call and its hash. The test adds the token's event for it. */
  function makeCall(contract: string, name: string, args: xdr.ScVal[], authorized?: xdr.SorobanAuthorizedInvocation) {
    const auth = authorized
      ? [
          new xdr.SorobanAuthorizationEntry({
            credentials: xdr.SorobanCredentials.sorobanCredentialsSourceAccount(),
            rootInvocation: authorized,
          }),
        ]
      : []
    const built = new TransactionBuilder(new Account(OWNER, '1'), { fee: '100', networkPassphrase: PASSPHRASE })
      .addOperation(Operation.invokeContractFunction({ contract, function: name, args, auth }))
      .setTimeout(60)
      .build()
    return { hash: Buffer.from(built.hash()).toString('hex'), envelope: built.toXdr() }
  }

  /** Adds the event of a call, whose data is `DATA`. */
  function addCall({ hash, envelope }: ReturnType<typeof makeCall>, ledger: number, name = 'set_spender'): void {
    fake.data = DATA.toXdr('base64')
    fake.add(ledger, name, name === 'set_spender' ? [OWNER, SPENDER] : [SPENDER, OWNER, PAYEE], CONTRACTS.token, hash)
    fake.envelopes.set(hash, envelope)
  }

  const direct = (payload = PAYLOAD) => makeCall(CONTRACTS.token, 'set_spender', [dataOf(payload)])
  const other = payloadWith({ r_e_point: bytes(Buffer.alloc(64, 8)) })

  test.each([
    ['the call', direct()],
    [
      'the arguments of another contract, which passes them on',
      makeCall(CONTRACTS.auditor, 'delegate', [xdr.ScVal.scvVec([nativeToScVal(1), dataOf(other), dataOf(PAYLOAD)])]),
    ],
    [
      'the authorization of a call that another contract makes',
      makeCall(
        CONTRACTS.auditor,
        'delegate',
        [],
        call(
          CONTRACTS.auditor,
          'delegate',
          [],
          [call(CONTRACTS.token, 'set_spender', [dataOf(other), dataOf(PAYLOAD)])],
        ),
      ),
    ],
  ])('are taken from %s without the proof, byte for byte', async (_, made) => {
    addCall(made, 2)
    const archive = await readTwice()
    const { events, isFinal } = await readAccountEvents(db, archive, OWNER, { ...everything(archive), toLedger: 2 })
    expect(events).toMatchObject([{ type: 'set_spender', payload_xdr: PAYLOAD.toXdr('base64') }])
    expect(isFinal).toBe(true)
  })

  test.each([
    ['has another ephemeral key', direct(other)],
    ['differs in another field of the event', direct(payloadWith({ sigma: OTHER }))],
    ['is missing from the transaction', makeCall(CONTRACTS.token, 'merge', [])],
  ])('are lost if the payload %s', async (_, made) => {
    addCall(made, 2)
    const archive = await ingested()
    const { events } = await readAccountEvents(db, archive, OWNER, everything(archive))
    expect(events).toMatchObject([{ payload_lost: true }])
  })

  test('are requested until a node has the transaction, and lost once the RPC has dropped it', async () => {
    const made = direct()
    addCall(made, 20, 'spender_transfer')
    fake.envelopes.set(made.hash, 'AAAA')
    let archive = await readTwice()
    const read = (toLedger = 20) => readAccountEvents(db, archive, PAYEE, { ...everything(archive), toLedger })
    expect(await read()).toMatchObject({ isFinal: false })
    fake.envelopes.set(made.hash, makeCall(CONTRACTS.token, 'merge', []).envelope)
    archive = await ingested()
    expect(await read()).toMatchObject({ isFinal: false })
    fake.envelopes.set(made.hash, made.envelope)
    archive = await ingested()
    expect(await read()).toMatchObject({ isFinal: true, events: [{ payload_xdr: expect.any(String) }] })

    fake.add(130, 'spender_transfer', [SPENDER, OWNER, PAYEE])
    await ingested()
    Object.assign(fake, { oldestLedger: 131, latestLedger: 140 })
    archive = await ingested()
    const { events } = await read(130)
    expect(events.at(-1)).toMatchObject({ ledger_seq: 130, payload_lost: true })
    expect(events.at(-1)).not.toHaveProperty('payload_xdr')
  })

  test('are fetched with the least tried first, so that none waits behind transactions that no node returns', async () => {
    for (let index = 0; index < 200; index += 1) fake.add(2, 'spender_transfer', [SPENDER, OWNER, PAYEE])
    await ingested()
    addCall(direct(), 3)
    const archive = await ingested()
    const { events } = await readAccountEvents(db, archive, OWNER, { ...everything(archive), fromLedger: 3 })
    expect(events).toMatchObject([{ payload_xdr: PAYLOAD.toXdr('base64') }])
  })

  test('are fetched for delegations only', async () => {
    fake.add(2, 'transfer', [OWNER, PAYEE])
    await ingested()
    expect(await db.select().from(archivePayloads)).toEqual([])
  })
})
