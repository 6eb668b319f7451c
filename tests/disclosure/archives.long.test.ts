import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sendAndWait } from '#lib/cli/client/participants.ts'
import type { Bundle } from '#lib/disclosure/bundle.ts'
import type { DisclosureErrorCode } from '#lib/disclosure/disclosure-error.ts'
import { openLedgerSource } from '#lib/disclosure/ledger-source.ts'
import { DISCLOSURE_FILES } from '#lib/disclosure/node/files.ts'
import { openDisclosureProver } from '#lib/disclosure/node/prover.ts'
import { readPayment } from '#lib/disclosure/payment.ts'
import { disclosePayments } from '#lib/disclosure/payment-disclosure.ts'
import { createRequest, type DisclosureRequest } from '#lib/disclosure/request.ts'
import { verifyDisclosure } from '#lib/disclosure/verify.ts'
import type { ArchivedEvent, TokenArchive } from '#lib/wallet/archive.ts'
import { buildTransfer } from '#lib/wallet/calls.ts'
import { type Payer, startTestLedger, type TestLedger } from '../support/test-ledger.ts'
import { holder, seeded } from '../wallet/fixtures.ts'
import { FakeLedger } from './fake-ledger.ts'

const HISTORY = 400
const SECRET = 4_711n

let ledger: TestLedger
let employer: Payer
let contractor: Payer
let prover: Awaited<ReturnType<typeof openDisclosureProver>>
let request: Extract<DisclosureRequest, { statement: 'payment' }>
/** the one payment on the ledger, and one that the contractor made up */
let real: ArchivedEvent
let invented: ArchivedEvent
/** their disclosures by the contractor */
let honest: Bundle[]
let fraud: Bundle[]

async function whileLedgersClose<Result>(work: () => Promise<Result>): Promise<Result> {
  const closing = setInterval(ledger.devnet.closeLedger, 20)
  return await work().finally(() => clearInterval(closing))
}

const archive = (name: string, events: readonly ArchivedEvent[]): TokenArchive => ({
  name,
  findStart: async () => undefined,
  readEvents: async () => ({ events: [...events], complete: true }),
  readTransaction: async (hash) => ({ events: events.filter(({ tx_hash }) => tx_hash === hash), complete: true }),
  readToken: async () => ({ events: [...events], complete: true }),
  readRegistry: async () => ({ events: [], complete: true }),
})

async function discloseOne(event: ArchivedEvent): Promise<Bundle[]> {
  const { network } = ledger
  const source = openLedgerSource(network.rpc, network.token, [archive('own', [event])])
  const context = { source, prover, random: seeded(event.id) }
  const [found] = await source.readTransaction(event.tx_hash)
  if (!found) throw new Error('nothing found')
  return (await disclosePayments(context, request, contractor, [readPayment(found, network.token)])).bundles
}

async function verify(bundles: Bundle[], archives: TokenArchive[]) {
  // An RPC whose last ledger is old reports that it is unhealthy.
  await ledger.devnet.closeLedger()
  const source = openLedgerSource(ledger.network.rpc, ledger.network.token, archives)
  return await verifyDisclosure({ source, files: DISCLOSURE_FILES }, { request, secret: SECRET, bundles })
}

beforeAll(async () => {
  ledger = await startTestLedger({ closeMs: 0, historyLedgers: HISTORY })
  const { network } = ledger
  await whileLedgersClose(async () => {
    employer = await ledger.endowPayer(1_000n)
    contractor = await ledger.endowPayer(0n)
    const payment = { to: contractor.address, amount: 30n, opening: employer.opening }
    await sendAndWait(network, (await buildTransfer(network, employer, payment)).signedXdr)
  })
  const { latestLedger } = await network.rpc.getHealth()
  const filters = [{ type: 'contract' as const, contractIds: [network.token] }]
  const { events } = await network.rpc.getEvents({ filters, startLedger: Math.max(1, latestLedger - HISTORY + 20) })
  const last = events.at(-1)
  if (!last) throw new Error('there is no payment')
  real = {
    id: last.id,
    contract_id: network.token,
    ledger_seq: last.ledger,
    ledger_close_time: last.ledgerClosedAt,
    tx_hash: last.txHash,
    event_index: Number(last.id.split('-')[1]),
    topics_xdr: last.topic.map((topic) => topic.toXdr('base64')),
    data_xdr: last.value.toXdr('base64'),
  }
  // The contractor encrypts an income of 9,000 to itself, and puts it into a ledger that the RPC drops.
  const { topics, data } = new FakeLedger().pay(holder('nobody'), contractor, 9_000n)
  const sender = real.topics_xdr[1] ?? ''
  invented = {
    ...real,
    id: real.id.replace(/\d{10}$/, '0000000001'),
    event_index: 1,
    tx_hash: '1'.repeat(64),
    topics_xdr: [topics[0] ?? '', sender, topics[2] ?? ''],
    data_xdr: data,
  }
  for (let closed = 0; closed <= HISTORY; closed += 1) ledger.devnet.closeLedger()
  prover = await openDisclosureProver(network.passphrase, {}, () => undefined)
  const question = { network: network.passphrase, token: network.token, account: contractor.address }
  const created = createRequest(SECRET, { ...question, statement: 'payment', role: 'recipient' }, seeded('request'))
  if (created.statement !== 'payment') throw new Error('another request')
  request = created
  honest = await discloseOne(real)
  fraud = await discloseOne(invented)
})
afterAll(async () => {
  await prover.destroy()
  await ledger.close()
})

test('verifies an old payment from two archives that agree, and names both', async () => {
  const archives = [archive('https://one.example', [real]), archive('https://two.example', [real])]
  const verified = await verify(honest, archives)
  expect(verified).toMatchObject({ value: 30n, payments: [{ source: 'https://one.example and https://two.example' }] })
})

test('a single trusted archive can invent an income, and is named as its source', async () => {
  const verified = await verify(fraud, [archive('https://lying.example', [real, invented])])
  expect(verified).toMatchObject({ value: 9_000n, payments: [{ source: 'https://lying.example' }] })
})

const other = (event: Partial<ArchivedEvent>): ArchivedEvent => ({ ...real, ...event })
const inWindow = (id: string, ledgers: bigint): string => {
  const [toid = '0', index] = id.split('-')
  return `${String(BigInt(toid) + (ledgers << 32n)).padStart(19, '0')}-${index}`
}

const DISAGREEMENTS: [string, DisclosureErrorCode, () => Bundle[], () => ArchivedEvent[][]][] = [
  ['one archive invents an event', 'archives-differ', () => fraud, () => [[real], [real, invented]]],
  [
    'one archive changes when the ledger closed',
    'archives-differ',
    () => honest,
    () => [[real], [other({ ledger_close_time: '2020-01-01T00:00:00Z' })]],
  ],
  [
    'an archive puts an event into a ledger that the RPC still has',
    'archives-differ',
    () => fraud,
    () => [[{ ...invented, id: inWindow(invented.id, 200n + BigInt(HISTORY) / 2n) }]],
  ],
  ['no archive is named', 'event-out-of-range', () => honest, () => []],
]

describe('refuses a payment that the RPC has dropped', () => {
  test.each(DISAGREEMENTS)('%s: %s', async (_, code, bundles, archives) => {
    const named = archives().map((events, index) => archive(`https://archive-${index}.example`, events))
    await expect(verify(bundles(), named)).rejects.toMatchObject({ code })
  })
})

describe('while the RPC has a payment', () => {
  let recent: ArchivedEvent
  let bundles: Bundle[]

  beforeAll(async () => {
    const { network } = ledger
    const again = await whileLedgersClose(async () => {
      const payer = await ledger.endowPayer(500n)
      const { signedXdr, hash } = await buildTransfer(network, payer, {
        to: contractor.address,
        amount: 7n,
        opening: payer.opening,
      })
      await sendAndWait(network, signedXdr)
      return hash
    })
    const [event] = await openLedgerSource(network.rpc, network.token).readTransaction(again)
    if (!event) throw new Error('there is no payment')
    recent = {
      ...real,
      id: event.id,
      ledger_seq: event.ledger,
      ledger_close_time: event.closedAt,
      tx_hash: event.transaction,
      event_index: event.eventIndex,
      topics_xdr: [...event.topics],
      data_xdr: event.data,
    }
    bundles = await discloseOne(recent)
  })

  test('reads it from the RPC, even if an archive has not seen it yet', async () => {
    for (const events of [[recent], []]) {
      const verified = await verify(bundles, [archive('https://one.example', events)])
      expect(verified).toMatchObject({ value: 7n, payments: [{ source: 'the RPC' }] })
    }
  })

  test('refuses it if an archive has another version of it', async () => {
    const archives = [archive('https://lying.example', [{ ...recent, data_xdr: invented.data_xdr }])]
    await expect(verify(bundles, archives)).rejects.toMatchObject({ code: 'archives-differ' })
  })

  test('refuses another event of its transaction that an archive invents', async () => {
    const second = { ...recent, id: recent.id.replace(/\d{10}$/, '0000000009'), event_index: 9 }
    const forged = bundles.map((bundle) => ({ ...bundle, events: [{ transaction: recent.tx_hash, eventIndex: 9 }] }))
    await expect(verify(forged, [archive('https://lying.example', [recent, second])])).rejects.toMatchObject({
      code: 'archives-differ',
    })
    await expect(verify(forged, [])).rejects.toMatchObject({ code: 'event-not-found' })
  })
})
