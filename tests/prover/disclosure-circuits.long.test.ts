import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import type { CompiledCircuit } from '@noir-lang/noir_js'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { readPayment } from '#lib/disclosure/payment.ts'
import { type Secrets, solve } from '#lib/disclosure/prover.ts'
import { publicInputs } from '#lib/disclosure/public-inputs.ts'
import { seal } from '#lib/disclosure/sealing.ts'
import { sealTagOf } from '#lib/disclosure/verify.ts'
import { openBackend } from '#lib/prover/backend.ts'
import { compileDisclosures, makeKeySet } from '#lib/prover/circuits/compile.ts'
import { unpackBytecode } from '#lib/prover/circuits.ts'
import { DISCLOSURE_CIRCUITS, type DisclosureCircuit } from '#lib/prover/disclosure-circuits.ts'
import { KEY_SET_DIGESTS, type KeySetName, keySetOf, parseKeySet } from '#lib/prover/key-set.ts'
import { isComplete, readKnownString, readReferenceString } from '#lib/prover/node/reference-string.ts'
import { watchWorker } from '#lib/prover/node/worker.ts'
import { commit } from '#lib/wallet/commitment.ts'
import { deriveEphemeral } from '#lib/wallet/encryption.ts'
import { decodeField, encodeField, encodePoint, FIELD, H, multiply } from '#lib/wallet/grumpkin.ts'
import { FakeLedger } from '../disclosure/fake-ledger.ts'
import { TOKEN } from '../wallet/fixtures.ts'

const FOLDER = 'lib/prover/circuits/disclosure'
const EMBEDDED = 'lib/prover/reference-string'
/**
 * The keys that are generated again: one of each size of circuit. Digests protect the files as a whole, and the tests
 * of forgeries verify honest proofs with most of the embedded ones.
 */
const SAMPLES = ['balance-value', 'total-at-least-sender-4', 'total-recipient-27']

let artifacts: Awaited<ReturnType<typeof compileDisclosures>>

beforeAll(async () => {
  artifacts = await compileDisclosures()
})

const keyFile = (name: KeySetName) => readFile(`${FOLDER}/${name}.keys.json`, 'utf8')

describe('the committed circuits and keys', () => {
  test('match the sources, byte for byte', async () => {
    for (const { name } of DISCLOSURE_CIRCUITS) {
      expect(await readFile(`${FOLDER}/${name}.json`, 'utf8'), name).toBe(artifacts.get(name))
    }
  })

  const expectKeys = async (set: KeySetName, folder: string) => {
    const isSample = ([name]: [string, string]) => SAMPLES.includes(name)
    const made = JSON.parse(await makeKeySet(set, folder, new Map([...artifacts].filter(isSample))))
    expect(Object.keys(made.keys).toSorted()).toEqual(SAMPLES.toSorted())
    expect(JSON.parse(await keyFile(set))).toMatchObject(made)
  }

  test('match the embedded reference string', () => expectKeys('embedded', EMBEDDED))

  test('match the Ignition reference string, where it is available', async ({ skip }) => {
    const folder = await findIgnition()
    if (folder === undefined) return skip('the string is neither in ~/.bb-crs nor in the package registry')
    await expectKeys('ignition', folder)
  })

  test('are rejected for the other string, and if damaged', async () => {
    const [ignition, embedded] = await Promise.all([keyFile('ignition'), keyFile('embedded')])
    const bytes = (text: string) => new TextEncoder().encode(text)
    expect(parseKeySet('ignition', bytes(ignition)).keys.size).toBe(DISCLOSURE_CIRCUITS.length)
    expect(() => parseKeySet('ignition', bytes(embedded))).toThrow(
      'the verification keys of the set ignition are damaged',
    )
    expect(() => parseKeySet('embedded', bytes(embedded.slice(0, 5_000)))).toThrow('are damaged')
    const swapped = JSON.stringify({ ...JSON.parse(ignition), g2: JSON.parse(embedded).g2 })
    expect(() => parseKeySet('ignition', bytes(swapped))).toThrow('are damaged')
  })

  test('are chosen by the network alone', () => {
    expect(keySetOf('Standalone Network ; February 2017')).toBe('embedded')
    expect(keySetOf('Test SDF Network ; September 2015')).toBe('ignition')
    expect(keySetOf('a private network')).toBe('ignition')
  })
})

/** The ceremony's string: from where bb.js keeps it, or from the transcript in a published package. */
async function findIgnition(): Promise<string | undefined> {
  if (await isComplete(`${homedir()}/.bb-crs`)) return `${homedir()}/.bb-crs`
  const folder = await mkdtemp(path.join(tmpdir(), 'ignition-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  try {
    const run = promisify(execFile)
    await run('npm', ['pack', '@aztec/circuits.js@0.15.0', '--silent'], { cwd: folder, timeout: 120_000 })
    const entry = 'package/resources/ignition/monomial/transcript00.dat'
    await run('tar', ['xzf', 'aztec-circuits.js-0.15.0.tgz', entry], { cwd: folder })
    const transcript = await readFile(path.join(folder, entry))
    // A coordinate is four 64-bit limbs, the least significant first, each big-endian.
    const ordered = Buffer.alloc(transcript.length)
    for (let at = 0; at < transcript.length; at += 8) transcript.copy(ordered, (at & ~31) + 24 - (at & 31), at, at + 8)
    await writeFile(path.join(folder, 'bn254_g1.dat'), ordered.subarray(0, 32_769 * 64))
    await writeFile(path.join(folder, 'bn254_g2.dat'), ordered.subarray(-128))
  } catch {
    return undefined
  }
  await readKnownString(folder, KEY_SET_DIGESTS.ignition, 'of the ceremony')
  return folder
}

/** Gates of each circuit, a power of two. With G or H as a constant each would have more. */
const gatesOf = ({ kind, slots, name }: DisclosureCircuit): number => {
  if (kind !== 'total') return 8_192
  return slots === 27 || (slots === 10 && name.includes('sender') && !name.includes('auditor')) ? 32_768 : 16_384
}

test('the circuits fit into the reference string', async () => {
  const backend = openBackend({
    referenceString: () => readReferenceString(EMBEDDED),
    threads: 1,
    limitMs: 120_000,
    watchWorker,
  })
  onTestFinished(backend.destroy)
  for (const circuit of DISCLOSURE_CIRCUITS) {
    const acir = await unpackBytecode(circuit.name, programOf(circuit).bytecode)
    const [, gates] = await backend.run((api) => api.acirGetCircuitSizes(acir, false, true))
    expect(gates, circuit.name).toBe(gatesOf(circuit))
  }
})

const programOf = ({ name }: DisclosureCircuit): CompiledCircuit => JSON.parse(artifacts.get(name) ?? '')

/** A true statement: the public inputs, and the secrets that solve it. */
interface Statement {
  program: CompiledCircuit
  inputs: Uint8Array
  secrets: Record<string, bigint | bigint[]>
}

const OPENING = { value: 500n, blinding: 99n }
const ADDRESSEE = { key: encodePoint(multiply(H, 4_711n)), nonce: encodeField(42n) }
const R_D = 31n

/** Two payments in the first slots, or the balance of the payer. */
function trueStatement(circuit: DisclosureCircuit, amounts = [7n, 30n], balance = OPENING): Statement {
  const ledger = new FakeLedger()
  const [payer, payee] = [ledger.enrol('payer'), ledger.enrol('payee')]
  const used = circuit.kind === 'payment' ? amounts.slice(0, 1) : circuit.kind === 'total' ? amounts : []
  const payments = used.map((amount) => readPayment(ledger.pay(payer, payee, amount), TOKEN))
  const value = circuit.kind === 'balance' ? balance.value : used.reduce((sum, amount) => sum + amount, 0n)
  const [auditor] = ledger.auditorKeys
  const isAudit = circuit.kind !== 'balance' && circuit.role.startsWith('auditor')
  const isSender = circuit.kind !== 'balance' && circuit.role === 'sender'
  const holder = circuit.kind === 'balance' ? payer : payee
  const fill = (values: bigint[], rest: bigint) => Array.from({ length: circuit.slots }, (_, at) => values[at] ?? rest)
  const ephemeral = payments.map(({ salt }) => deriveEphemeral(payer.keys.vk, decodeField(salt)))
  const sealed = seal(sealTagOf(circuit), ((value % FIELD) + FIELD) % FIELD, ADDRESSEE, R_D)
  const inputs = publicInputs({
    circuit,
    token: TOKEN,
    key: isSender ? undefined : isAudit ? auditor?.key : holder.keys.viewingKey,
    spendable: circuit.kind === 'balance' ? encodePoint(commit(balance)) : undefined,
    payments,
    viewingKeys: new Map([payer, payee].map(({ address, keys }) => [address, keys.viewingKey])),
    addressee: ADDRESSEE,
    disclosed: circuit.disclosed === 'value' ? { sealed } : { threshold: value },
  })
  const secrets = {
    ...(isAudit && { k: auditor?.secret ?? 0n }),
    ...(!isAudit && {
      sk: isSender
        ? fill(
            payments.map(() => payer.keys.sk),
            1n,
          )
        : holder.keys.sk,
    }),
    ...(isSender && { r_e: fill(ephemeral, 1n) }),
    ...(circuit.kind === 'balance' ? { v: balance.value, r: balance.blinding } : { v: fill(used, 0n) }),
    ...(circuit.disclosed === 'value' && { r_d: R_D }),
  }
  return { program: programOf(circuit), inputs, secrets }
}

/** The index of a public parameter's first word. */
function wordOf({ abi }: CompiledCircuit, name: string): number {
  type Type = (typeof abi.parameters)[number]['type']
  const sizeOf = (type: Type): number => (type.kind === 'array' ? type.length * sizeOf(type.type) : 1)
  let at = 0
  for (const { name: each, type, visibility } of abi.parameters) {
    if (each === name) return at
    if (visibility === 'public') at += sizeOf(type)
  }
  throw new Error(`there is no parameter ${name}`)
}

/** The statement with other public words, from a parameter's first on. */
const withWords =
  (name: string, offset: number, content: Uint8Array) =>
  (statement: Statement): Statement => {
    const inputs = statement.inputs.slice()
    inputs.set(content, 32 * (wordOf(statement.program, name) + offset))
    return { ...statement, inputs }
  }

const another = encodePoint(multiply(H, 5n))
const changeFirst = (values: bigint | bigint[] | undefined, by: bigint): bigint | bigint[] =>
  Array.isArray(values) ? values.map((value, at) => (at === 0 ? value + by : value)) : (values ?? 0n) + by
const withSecret =
  (name: string, change: (value: bigint | bigint[] | undefined) => bigint | bigint[]) =>
  (statement: Statement): Statement => ({
    ...statement,
    secrets: { ...statement.secrets, [name]: change(statement.secrets[name]) },
  })

const BIT_SIZE = 'call to assert_max_bit_size'
const LARGE = (1n << 127n) - 6n
const isRole =
  (...roles: string[]) =>
  (circuit: DisclosureCircuit) =>
    circuit.kind !== 'balance' && roles.includes(circuit.role)
const isKind = (kind: DisclosureCircuit['kind']) => (circuit: DisclosureCircuit) => circuit.kind === kind
const discloses = (disclosed: DisclosureCircuit['disclosed']) => (circuit: DisclosureCircuit) =>
  circuit.disclosed === disclosed
const same = (statement: Statement) => statement

/** Each breaks one assertion. An amount is 5 less than 0, or two amounts are together out of range. */
const BROKEN: {
  reason: string
  concerns: (circuit: DisclosureCircuit) => boolean
  statement?: (circuit: DisclosureCircuit) => Statement
  change?: (statement: Statement) => Statement
}[] = [
  {
    reason: 'the viewing key does not match the spending secret',
    concerns: isRole('recipient'),
    change: withWords('pvk', 0, another),
  },
  {
    reason: 'the viewing key does not match the spending secret',
    concerns: isKind('balance'),
    change: withWords('pvk', 0, another),
  },
  {
    reason: 'the viewing key does not match the spending secret',
    concerns: isRole('sender'),
    change: withWords('payments', 0, another),
  },
  {
    reason: 'the ephemeral key does not match its secret',
    concerns: isRole('sender'),
    change: withSecret('r_e', (value) => changeFirst(value, 1n)),
  },
  {
    reason: "the auditor's key does not match its secret",
    concerns: isRole('auditor-recipient', 'auditor-sender'),
    change: withWords('k_aud', 0, another),
  },
  {
    reason: 'the amount is not that of the payment',
    concerns: (circuit) => circuit.kind !== 'balance',
    change: withSecret('v', (value) => changeFirst(value, 1n)),
  },
  {
    reason: BIT_SIZE,
    concerns: (circuit) => circuit.kind !== 'balance',
    change: withSecret('v', (value) => changeFirst(value, FIELD - 12n)),
  },
  { reason: BIT_SIZE, concerns: isKind('total'), statement: (circuit) => trueStatement(circuit, [LARGE, LARGE]) },
  {
    reason: 'an unused slot has an amount',
    concerns: isKind('total'),
    change: withSecret('v', (value) => (Array.isArray(value) ? [...value.slice(0, -1), 1n] : 0n)),
  },
  {
    reason: 'the number of payments is out of range',
    concerns: isKind('total'),
    change: withWords('count', 0, encodeField(0n)),
  },
  {
    reason: 'the number of payments is out of range',
    concerns: isKind('total'),
    change: withWords('count', 0, encodeField(28n)),
  },
  {
    reason: 'the opening does not match the balance',
    concerns: isKind('balance'),
    change: withWords('c_spend', 0, another),
  },
  { reason: BIT_SIZE, concerns: isKind('balance'), change: withSecret('v', () => FIELD - 5n) },
  {
    reason: 'the sealing key does not match its secret',
    concerns: discloses('value'),
    change: withWords('sealed', 0, another),
  },
  {
    reason: 'the sealed value is another',
    concerns: discloses('value'),
    change: withWords('sealed', 2, encodeField(5n)),
  },
  {
    reason: 'the sealed value is another',
    concerns: discloses('value'),
    change: withWords('nonce', 0, encodeField(43n)),
  },
  { reason: BIT_SIZE, concerns: discloses('at-least'), change: withWords('threshold', 0, encodeField(501n)) },
  { reason: BIT_SIZE, concerns: discloses('at-most'), change: withWords('threshold', 0, encodeField(36n)) },
]

/** The larger circuits of a total come from the same source. */
const SMALL = DISCLOSURE_CIRCUITS.filter(
  ({ slots, name }) => slots < 27 && name !== 'total-sender-10' && name !== 'total-at-least-sender-10',
)

describe.each(SMALL.map((circuit) => [circuit.name, circuit] as const))('%s', (_, circuit) => {
  const broken = BROKEN.filter(({ concerns }) => concerns(circuit))

  test('is solved by a true statement, and by none with one false equation', async () => {
    const { program, inputs, secrets } = trueStatement(circuit)
    await expect(solve(program, inputs, secrets as Secrets)).resolves.toBeDefined()
    for (const { reason, statement = trueStatement, change = same } of broken) {
      const changed = change(statement(circuit))
      const solving = solve(changed.program, changed.inputs, changed.secrets as Secrets)
      await expect(solving, reason).rejects.toThrow(`the statement is false: ${reason}`)
    }
  })

  test('has a false statement here for every assertion', () => {
    const messages = [...(artifacts.get(circuit.name) ?? '').matchAll(/"error_kind":"string","string":"([^"]+)"/g)]
    const asserted = new Set(messages.map(([, message]) => message).filter((message) => message !== 'Stack too deep'))
    expect([...asserted].toSorted()).toEqual([...new Set(broken.map(({ reason }) => reason))].toSorted())
  })
})
