import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Bundle } from '#lib/disclosure/bundle.ts'
import { DisclosureError, type DisclosureErrorCode } from '#lib/disclosure/disclosure-error.ts'
import type { DisclosureSource } from '#lib/disclosure/ledger-source.ts'
import { DISCLOSURE_FILES } from '#lib/disclosure/node/files.ts'
import { openDisclosureProver } from '#lib/disclosure/node/prover.ts'
import { type LedgerEvent, readPayment } from '#lib/disclosure/payment.ts'
import { solve } from '#lib/disclosure/prover.ts'
import { publicInputs } from '#lib/disclosure/public-inputs.ts'
import { createRequest, type DisclosureRequest } from '#lib/disclosure/request.ts'
import { seal } from '#lib/disclosure/sealing.ts'
import { verifyDisclosure } from '#lib/disclosure/verify.ts'
import { openBackend } from '#lib/prover/backend.ts'
import { parseProgram, unpackBytecode } from '#lib/prover/circuits.ts'
import { DISCLOSURE_ROLES, findDisclosureCircuit } from '#lib/prover/disclosure-circuits.ts'
import { readReferenceString } from '#lib/prover/node/reference-string.ts'
import { watchWorker } from '#lib/prover/node/worker.ts'
import { loadZeroKnowledgeVerifier } from '#lib/prover/verifier.ts'
import { encodeField } from '#lib/wallet/grumpkin.ts'
import { seeded, TOKEN } from '../wallet/fixtures.ts'
import { OTHER_TOKEN } from './fake-ledger.ts'
import { disclose, discloseAll, type Honest, openCase, REQUESTER } from './honest.ts'

const given = openCase()
let honest: Map<string, Honest>
let prover: Awaited<ReturnType<typeof openDisclosureProver>>

const PAYMENTS = DISCLOSURE_ROLES.map((role) => `payment ${role}`)
const TOTALS = DISCLOSURE_ROLES.map((role) => `total ${role}`)
const TOTAL_THRESHOLDS = DISCLOSURE_ROLES.map((role) => `at least ${role}`)
const BALANCES = ['balance', 'balance at least', 'balance at most']
const OF_PAYMENTS = [...PAYMENTS, ...TOTALS, ...TOTAL_THRESHOLDS]
const ALL = [...OF_PAYMENTS, ...BALANCES]

beforeAll(async () => {
  prover = await openDisclosureProver('Standalone Network ; February 2017', {}, () => undefined)
  honest = await discloseAll(given, prover)
})
afterAll(() => prover.destroy())

/** Verifiers are kept: each takes half a second to load. */
const verifier = Promise.withResolvers<Awaited<ReturnType<typeof loadZeroKnowledgeVerifier>>>()
let isLoaded = false
const load = (g2: Uint8Array) => {
  if (!isLoaded) loadZeroKnowledgeVerifier(g2).then(verifier.resolve, verifier.reject)
  isLoaded = true
  return verifier.promise
}

interface Received extends Honest {
  secret?: bigint
  source?: DisclosureSource
}

function verify({ request, bundles, secret = REQUESTER, source = given.ledger.source() }: Received) {
  return verifyDisclosure({ source, files: DISCLOSURE_FILES, load }, { request, secret, bundles })
}

function honestly(name: string): Honest {
  const found = honest.get(name)
  if (!found) throw new Error(`there is no disclosure ${name}`)
  return found
}

describe('verifies an honest disclosure', () => {
  test.each(PAYMENTS)('%s', async (name) => {
    const verified = await verify(honestly(name))
    expect(verified).toMatchObject({
      value: 30n,
      forgeable: true,
      payments: [{ transaction: given.paid[1]?.transaction }],
    })
  })

  test.each(TOTALS)('%s', async (name) => {
    const { value, subtotals, payments } = await verify(honestly(name))
    expect([value, subtotals, payments.length]).toEqual([537n, [537n], 3])
  })

  test.each([...TOTAL_THRESHOLDS, 'balance at least', 'balance at most'])('%s', async (name) => {
    expect(await verify(honestly(name))).toMatchObject({ value: undefined, subtotals: [] })
  })

  test('balance', async () => {
    expect(await verify(honestly('balance'))).toMatchObject({ value: 500n, payments: [] })
  })
})

/** The honest disclosure with one part changed. */
type Forge = (honest: Honest) => Received

const first = <Item>([item]: readonly Item[]): Item => {
  if (item === undefined) throw new Error('nothing there')
  return item
}
const changed =
  (bundle: Partial<Bundle>): Forge =>
  ({ request, bundles }) => ({
    request,
    bundles: [{ ...first(bundles), ...bundle }],
  })
const asked =
  (part: Partial<DisclosureRequest>): Forge =>
  (received) => ({
    ...received,
    request: { ...received.request, ...part } as DisclosureRequest,
  })
const reading =
  (part: Partial<DisclosureSource>): Forge =>
  (received) => ({
    ...received,
    source: { ...given.ledger.source(), ...part },
  })
/** The source has another event at every place. */
const finding = (change: (event: LedgerEvent) => LedgerEvent) =>
  reading({ findEvent: async (reference) => change(await given.ledger.source().findEvent(reference)) })
const referenceTo = ({ transaction, eventIndex }: LedgerEvent) => ({ transaction, eventIndex })

/** Another payment of the same account. */
const anotherEvent: Forge = ({ request, bundles }) => {
  const [bundle] = bundles
  if (!bundle) throw new Error('nothing there')
  const wanted = given.paid.find(({ transaction }) => bundle.events.every((event) => event.transaction !== transaction))
  const events = wanted ? [referenceTo(wanted), ...bundle.events.slice(1)] : bundle.events.toReversed()
  return { request, bundles: [{ ...bundle, events }] }
}

const repeated: Forge = ({ request, bundles }) => {
  const bundle = first(bundles)
  return { request, bundles: [{ ...bundle, events: [first(bundle.events), ...bundle.events] }] }
}

const withKeySwapped = reading({
  readAccounts: async (names) => {
    const accounts = await given.ledger.source().readAccounts(names)
    return new Map(
      [...accounts].map(([name, account]) => [name, { ...account, viewingKey: given.stranger.keys.viewingKey }]),
    )
  },
  findAuditorKeys: async (_, events) => events.map(() => given.stranger.keys.viewingKey),
})

const withSealed =
  (part: 'key' | 'value'): Forge =>
  ({ request, bundles }) => {
    const bundle = first(bundles)
    if (!bundle.sealed) throw new Error('nothing is sealed')
    const other = { key: given.stranger.keys.viewingKey, value: encodeField(5n) }
    return { request, bundles: [{ ...bundle, sealed: { ...bundle.sealed, [part]: other[part] } }] }
  }

const flipped: Forge = ({ request, bundles }) => {
  const bundle = first(bundles)
  const proof = bundle.proof.slice()
  proof[5_000] = (proof[5_000] ?? 0) ^ 1
  return { request, bundles: [{ ...bundle, proof }] }
}

const anotherRequester: Forge = ({ request, bundles }) => {
  const { key } = createRequest(4_712n, request, seeded('another requester'))
  return { request: { ...request, key }, secret: 4_712n, bundles }
}

const FORGERIES: [string, DisclosureErrorCode, readonly string[], Forge][] = [
  ['a request for another circuit', 'unknown-circuit', ALL, changed({ circuit: 'payment-nobody' })],
  ['a circuit of another statement', 'unknown-circuit', PAYMENTS, changed({ circuit: 'balance-value' })],
  [
    'the larger circuit of the same total',
    'proof-invalid',
    ['total recipient'],
    changed({ circuit: 'total-recipient-27' }),
  ],
  ['another secret key', 'key-mismatch', ALL, (received) => ({ ...received, secret: 4_712n })],
  ['a repeated event', 'event-repeated', [...TOTALS, ...TOTAL_THRESHOLDS], repeated],
  ['two payments in place of one', 'bundle-invalid', PAYMENTS, repeated],
  [
    'a threshold in two bundles',
    'bundle-invalid',
    TOTAL_THRESHOLDS,
    ({ request, bundles }) => ({ request, bundles: [...bundles, ...bundles] }),
  ],
  ['no sealed value', 'bundle-invalid', [...PAYMENTS, ...TOTALS, 'balance'], changed({ sealed: undefined })],
  [
    'an event repeated in another bundle',
    'event-repeated',
    TOTALS,
    ({ request, bundles }) => ({ request, bundles: [...bundles, ...bundles] }),
  ],
  ['another network', 'other-network', ALL, reading({ readPassphrase: async () => 'Another Network' })],
  [
    'an event that does not exist',
    'event-not-found',
    PAYMENTS,
    changed({ events: [{ transaction: '0'.repeat(64), eventIndex: 0 }] }),
  ],
  [
    'an event of another contract',
    'other-contract',
    OF_PAYMENTS,
    finding((event) => ({ ...event, contract: OTHER_TOKEN })),
  ],
  [
    'an event that is no payment',
    'wrong-event',
    OF_PAYMENTS,
    finding((event) => ({ ...event, topics: event.topics.slice(0, 2) })),
  ],
  ['a payment of two strangers', 'other-account', PAYMENTS, changed({ events: [referenceTo(given.elsewhere)] })],
  [
    'a payment outside the period',
    'outside-period',
    TOTALS,
    ({ request, bundles }) => ({
      request,
      bundles: [{ ...first(bundles), events: [referenceTo(given.early), ...first(bundles).events.slice(1)] }],
    }),
  ],
  [
    'an unregistered account',
    'not-registered',
    ['payment recipient', 'total sender', 'balance'],
    reading({ readAccounts: async () => new Map() }),
  ],
  ['another event', 'proof-invalid', OF_PAYMENTS, anotherEvent],
  ['another nonce', 'proof-invalid', ALL, asked({ nonce: '0'.repeat(63).concat('7') })],
  ['another requester', 'proof-invalid', ALL, anotherRequester],
  ['the key of another account', 'proof-invalid', ALL, withKeySwapped],
  ['a changed proof', 'proof-invalid', ALL, flipped],
  ['a proof of zeros', 'proof-invalid', ['payment recipient'], changed({ proof: new Uint8Array(16_224) })],
  ['another sealing key', 'proof-invalid', [...PAYMENTS, ...TOTALS, 'balance'], withSealed('key')],
  ['another sealed value', 'proof-invalid', [...PAYMENTS, ...TOTALS, 'balance'], withSealed('value')],
  ['a lower threshold', 'proof-invalid', [...TOTAL_THRESHOLDS, 'balance at least'], asked({ atLeast: '0.0000001' })],
  ['a higher threshold', 'proof-invalid', ['balance at most'], asked({ atMost: '1.0000000' })],
  [
    'fewer payments than were proved',
    'proof-invalid',
    [...TOTALS, ...TOTAL_THRESHOLDS],
    ({ request, bundles }) => ({
      request,
      bundles: [{ ...first(bundles), events: first(bundles).events.slice(1) }],
    }),
  ],
  [
    'a balance that has changed',
    'proof-invalid',
    BALANCES,
    reading({
      readAccounts: async (names) =>
        new Map(
          [...(await given.ledger.source().readAccounts(names))].map(([name, account]) => [
            name,
            { ...account, spendable: given.stranger.keys.viewingKey },
          ]),
        ),
    }),
  ],
]

describe.each(FORGERIES)('refuses %s: %s', (_, code, names, forge) => {
  test.each(names)('%s', async (name) => {
    await expect(verify(forge(honestly(name)))).rejects.toMatchObject({ name: 'DisclosureError', code })
  })
})

test('refuses a slot that is filled but not counted', async () => {
  const { request, bundles } = honestly('total recipient')
  const bundle = first(bundles)
  const circuit = findDisclosureCircuit(bundle.circuit)
  if (!circuit || !bundle.sealed) throw new Error('nothing there')
  const payments = bundle.events.map(({ transaction }) => {
    const event = given.paid.find((each) => each.transaction === transaction)
    return readPayment(event ?? given.early, TOKEN)
  })
  const { keys } = given.contractor
  const addressee = {
    key: new Uint8Array(Buffer.from(request.key, 'hex')),
    nonce: new Uint8Array(Buffer.from(request.nonce, 'hex')),
  }
  const threshold = {
    circuit: findDisclosureCircuit('total-at-least-recipient-10') ?? circuit,
    disclosed: { threshold: 30n },
  } as const
  const statement = { ...threshold, token: TOKEN, key: keys.viewingKey, payments, viewingKeys: new Map(), addressee }
  const inputs = publicInputs(statement)
  // The count follows the token and the account's key.
  inputs.set(encodeField(2n), 3 * 32)
  const values = [...given.amounts.slice(0, 2), ...Array.from({ length: 8 }, () => 0n)]
  const proof = await prover.prove(statement.circuit, inputs, { sk: keys.sk, v: values })
  const asking = {
    ...honestly('at least recipient').request,
    nonce: request.nonce,
    atLeast: '0.0000030',
  } as DisclosureRequest
  const forged = { circuit: statement.circuit.name, events: bundle.events.slice(0, 2), proof }
  await expect(verify({ request: asking, bundles: [forged] })).rejects.toMatchObject({ code: 'proof-invalid' })
  // Without the third payment, the same proof would count.
  const clean = publicInputs({ ...statement, payments: payments.slice(0, 2) })
  const honestProof = await prover.prove(statement.circuit, clean, { sk: keys.sk, v: values })
  await expect(verify({ request: asking, bundles: [{ ...forged, proof: honestProof }] })).resolves.toMatchObject({
    payments: [{}, {}],
  })
})

test('refuses a proof without zero knowledge under the same key', async () => {
  const { request, bundles } = honestly('payment recipient')
  const bundle = first(bundles)
  const backend = openBackend({
    referenceString: () => readReferenceString('lib/prover/reference-string'),
    threads: 1,
    limitMs: 120_000,
    watchWorker,
  })
  try {
    const { name, content } = await DISCLOSURE_FILES.readCircuit('payment-recipient')
    const program = parseProgram(name, new TextDecoder().decode(content))
    const acir = await unpackBytecode(name, program.bytecode)
    const payment = readPayment(first(given.paid.slice(1)), TOKEN)
    const circuit = findDisclosureCircuit('payment-recipient')
    if (!circuit || !bundle.sealed) throw new Error('nothing there')
    const addressee = {
      key: new Uint8Array(Buffer.from(request.key, 'hex')),
      nonce: new Uint8Array(Buffer.from(request.nonce, 'hex')),
    }
    const sealed = seal(16n, 30n, addressee, 5n)
    const { keys } = given.contractor
    const inputs = publicInputs({
      circuit,
      token: TOKEN,
      key: keys.viewingKey,
      payments: [payment],
      viewingKeys: new Map(),
      addressee,
      disclosed: { sealed },
    })
    const witness = await solve(program, inputs, { sk: keys.sk, v: [30n], r_d: 5n })
    const plain = await backend.run((api) => api.acirProveUltraKeccakHonk(acir, witness))
    const proof = new Uint8Array(plain.subarray(inputs.length))
    expect(proof.length).toBe(14_592)
    await expect(verify({ request, bundles: [{ ...bundle, sealed, proof }] })).rejects.toMatchObject({
      code: 'proof-invalid',
    })
    const zeroKnowledge = await prover.prove(circuit, inputs, { sk: keys.sk, v: [30n], r_d: 5n })
    await expect(verify({ request, bundles: [{ ...bundle, sealed, proof: zeroKnowledge }] })).resolves.toMatchObject({
      value: 30n,
    })
  } finally {
    await backend.destroy()
  }
})

test('a threshold under two keys of an auditor is proved under the one whose payments fit a proof', async () => {
  const rotated = openCase(Array.from({ length: 40 }, () => 1n))
  rotated.ledger.rotateAuditor()
  rotated.paid.push(rotated.ledger.pay(rotated.employer, rotated.contractor, 35n))
  const prove = (atLeast: bigint) => disclose(rotated, prover, 'auditor-recipient', { statement: 'total', atLeast })
  const { request, bundles } = await prove(35n)
  expect(bundles.map(({ events }) => events.length)).toEqual([1])
  await expect(verify({ request, bundles, source: rotated.ledger.source() })).resolves.toMatchObject({ subtotals: [] })
  await expect(prove(60n)).rejects.toMatchObject({ code: 'too-many-payments', message: /under one key/ })
  await expect(prove(80n)).rejects.toMatchObject({ code: 'not-true' })
})

test.each<{ statement: 'total'; atLeast?: bigint }>([{ statement: 'total' }, { statement: 'total', atLeast: 30n }])(
  'refuses a file without a bundle for %o',
  async (about) => {
    const { request } = await disclose(openCase(), prover, 'recipient', about)
    await expect(verify({ request, bundles: [] })).rejects.toMatchObject({ code: 'bundle-invalid' })
  },
)

test('a total under two keys of an auditor has a proof for each, and its subtotals are shown', async () => {
  const rotated = openCase([7n])
  rotated.ledger.rotateAuditor()
  rotated.paid.push(rotated.ledger.pay(rotated.employer, rotated.contractor, 40n))
  const { request, bundles } = await disclose(rotated, prover, 'auditor-recipient', { statement: 'total' })
  const source = rotated.ledger.source()
  expect(bundles).toHaveLength(2)
  expect(await verify({ request, bundles, source })).toMatchObject({ value: 47n, subtotals: [7n, 40n] })
  const [first, second] = bundles
  const together = { ...first, events: bundles.flatMap(({ events }) => events) } as Bundle
  await expect(verify({ request, bundles: [together], source })).rejects.toMatchObject({ code: 'bundle-invalid' })
  // Every key is read before the first proof is verified.
  const changed = { ...first, proof: new Uint8Array(16_224) } as Bundle
  const isLater = ({ transaction }: { transaction: string }) => transaction === second?.events[0]?.transaction
  const unknown: DisclosureSource = {
    ...source,
    findAuditorKeys: async (id, events) => {
      const payments = rotated.ledger.events.filter((each) => events.some((event) => event.id === each.id))
      if (payments.some(isLater)) throw new DisclosureError('auditor-key-unknown', 'it was registered later')
      return await source.findAuditorKeys(id, events)
    },
  }
  await expect(verify({ request, bundles: second ? [changed, second] : [], source: unknown })).rejects.toMatchObject({
    code: 'auditor-key-unknown',
  })
  const swapped = { ...first, events: second?.events ?? [] } as Bundle
  await expect(verify({ request, bundles: [swapped], source })).rejects.toMatchObject({ code: 'proof-invalid' })
})
