import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type CompiledCircuit, Noir } from '@noir-lang/noir_js'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { openBackend } from '#lib/prover/backend.ts'
import { compileCircuits, compileSource } from '#lib/prover/circuits/compile.ts'
import { CIRCUIT_NAMES, type Circuit, type CircuitName } from '#lib/prover/circuits.ts'
import { readCircuits } from '#lib/prover/node/circuit-folder.ts'
import { openProver } from '#lib/prover/node/prover.ts'
import { readReferenceString } from '#lib/prover/node/reference-string.ts'
import { watchWorker } from '#lib/prover/node/worker.ts'
import type { RealProver } from '#lib/prover/prover.ts'
import { circuitInputs } from '#lib/prover/prover.ts'
import { generateReferenceString } from '#lib/prover/reference-string/generate.ts'
import { sampleStatements } from '#lib/prover/sample.ts'
import { encryptTransfer, encryptWithdrawal } from '#lib/wallet/encryption.ts'
import { encodeField, encodePoint, FIELD, H, multiply } from '#lib/wallet/grumpkin.ts'
import { importKeys } from '#lib/wallet/keys.ts'
import type { Statement } from '#lib/wallet/prover.ts'
import { delegatedTransfer, delegation, registration, TOKEN, transfer, withdrawal } from './statements.ts'

const FOLDER = 'lib/prover/circuits'
const STRING = 'lib/prover/reference-string'

/** Generates no proof here: a false statement fails before. */
let prover: RealProver

beforeAll(async () => {
  prover = await openProver({ circuits: FOLDER, referenceString: STRING, threads: 1 })
})
afterAll(() => prover.destroy())

describe('the committed files', () => {
  test('match the sources, byte for byte', async () => {
    const compiled = await compileCircuits()
    for (const name of CIRCUIT_NAMES) {
      expect(await readFile(`${FOLDER}/${name}.json`, 'utf8')).toBe(compiled[name].artifact)
      expect((await readFile(`${FOLDER}/${name}.vk`)).equals(compiled[name].key)).toBe(true)
    }
  })

  test('match the generator of the reference string', async () => {
    const [g1, g2] = await Promise.all([readFile(`${STRING}/bn254_g1.dat`), readFile(`${STRING}/bn254_g2.dat`)])
    // The whole string takes five seconds, and a wrong point further on would fail the proofs of other tests.
    const made = generateReferenceString(1_000)
    expect([g1.subarray(0, 64_000).equals(made.g1), g2.equals(made.g2)]).toEqual([true, true])
    expect(g1.length).toBe(32_769 * 64)
  })
})

async function readCircuit(name: CircuitName): Promise<Circuit> {
  const circuit = (await readCircuits(FOLDER))[name]
  if (!circuit) throw new Error(`no circuit ${name}`)
  return circuit
}

/** Gates of each circuit and the next power of two, from the table in the documentation. */
async function readDocumentedGates(): Promise<Record<string, [number, number]>> {
  const rows = (await readFile('docs/relay-and-proofs.md', 'utf8')).matchAll(/^\| (\w+) \| ([\d,]+) \| 2\^(\d+) \|/gm)
  return Object.fromEntries(
    Array.from(rows, ([, name = '', gates = '', power]) => [
      name,
      [Number(gates.replace(',', '')), 2 ** Number(power)],
    ]),
  )
}

// With G as a constant, transfer has 10,964 gates, and with H 14,499: the backend then multiplies by lookup tables.
// Only register and withdraw reach another power of two because of that.
test.each(CIRCUIT_NAMES)('%s has the documented gates, so no generator is a constant', async (name) => {
  const backend = openBackend({
    referenceString: () => readReferenceString(STRING),
    threads: 1,
    limitMs: 120_000,
    watchWorker,
  })
  onTestFinished(backend.destroy)
  const { acir } = await readCircuit(name)
  expect(await backend.run((api) => api.acirGetCircuitSizes(acir, false, true))).toEqual(
    (await readDocumentedGates())[name],
  )
})

describe('a witness of the wallet', () => {
  const samples = sampleStatements()
  const raised = (value: bigint) => `0x${((value + 1n) % FIELD).toString(16)}`

  test.each(CIRCUIT_NAMES)('solves %s, and fails with any one of its inputs changed', async (name) => {
    const circuit = await readCircuit(name)
    const noir = new Noir(circuit.program)
    const inputs = circuitInputs(circuit, samples[name])
    await expect(noir.execute(inputs)).resolves.toBeDefined()
    for (const { name: input } of circuit.program.abi.parameters) {
      // No equation contains it; the proof is bound to it as to every public input.
      if (input === '_acct_f') continue
      const changed = { ...inputs, [input]: raised(BigInt(String(inputs[input]))) }
      await expect(noir.execute(changed), input).rejects.toThrow()
    }
  })
})

describe('the equations of these tests', () => {
  const keys = importKeys(1_234n, TOKEN)
  const start = { keys, opening: { value: 1_000n, blinding: 55n }, amount: 300n, salt: 4_242n }

  test('give the payloads of the wallet for the ephemeral secret of the wallet', () => {
    const { auditorSender, auditorRecipient, viewingKey, payload } = transfer()
    const wallet = encryptTransfer({ ...start, auditorSender, auditorRecipient, viewingKey })
    expect(transfer({ rE: wallet.witness.rE }).payload).toEqual(wallet.payload)
    expect(withdrawal({ rE: wallet.witness.rE }).payload).toEqual(
      encryptWithdrawal({ ...start, auditorSender }).payload,
    )
    expect(Object.keys(payload).toSorted()).toEqual(Object.keys(wallet.payload).toSorted())
    expect(registration(1_234n)).toMatchObject({ y: keys.spendingKey, pvk: keys.viewingKey })
  })
})

/** The only assertion that no statement can break alone: no secret is known whose hash is zero. */
const ZERO_VIEWING = 'the viewing secret is zero'
const LARGE = 1n << 127n
const another = encodePoint(multiply(H, 5n))
const offCurve = new Uint8Array(64).fill(1)
const identity = new Uint8Array(64)
const raise = (value: Uint8Array | undefined) =>
  encodeField((BigInt(`0x${Buffer.from(value ?? []).toString('hex')}`) + 1n) % FIELD)

type Spending = Exclude<Statement, { circuit: 'register' }>

/** The statement with another value in one place of its payload. */
function withPayload<S extends Spending>(statement: S, name: string, value = raise(statement.payload[name])): S {
  return { ...statement, payload: { ...statement.payload, [name]: value } }
}

/** A delegation with another word in one half of its escrow. */
function withEscrow(at: 0 | 32): Statement {
  const statement = delegation()
  const escrow = Buffer.from(statement.payload.escrowed_dvk ?? [])
  escrow.set(raise(escrow.subarray(at, at + 32)), at)
  return withPayload(statement, 'escrowed_dvk', escrow)
}

/** Statements that each break one assertion of every circuit that pays from a balance, with the message of that assertion. */
const spendingCases = <S extends Exclude<Spending, { circuit: 'spender_transfer' }>>(
  build: (given?: Parameters<typeof transfer>[0]) => S,
): [string, S][] => [
  ['the spending key does not match the spending secret', { ...build(), spendingKey: another }],
  ['call to assert_max_bit_size', build({ v: LARGE + 5n, amount: LARGE / 2n })],
  ['call to assert_max_bit_size', build({ v: 10n, amount: FIELD - 5n })],
  ['call to assert_max_bit_size', build({ v: 10n, amount: 15n })],
  ['the opening does not match the balance', { ...build(), spendable: another }],
  ['the commitment to the new balance is wrong', withPayload(build(), 'c_spend_new', another)],
  ['the encrypted balance is wrong', withPayload(build(), 'b_tilde')],
  ['the ephemeral secret is zero', build({ rE: 0n })],
  ['the ephemeral key does not match its secret', withPayload(build(), 'r_e_point', another)],
  ["the key of the sender's auditor is invalid", { ...build(), auditorSender: offCurve }],
  ["the key of the sender's auditor is invalid", { ...build(), auditorSender: identity }],
  ["the sender's auditor cannot read the balance", withPayload(build(), 'b_tilde_aud_s')],
  ["the sender's auditor cannot read the blinding", withPayload(build(), 'r_tilde_aud_s')],
]

const CASES: Record<string, [string, Statement][]> = {
  register: [
    ['the spending secret is zero', registration(0n)],
    ['the spending key does not match the spending secret', { ...registration(7n), y: another }],
    ['the viewing key does not match the viewing secret', { ...registration(7n), pvk: another }],
  ],
  transfer: [
    ...spendingCases(transfer),
    ['the commitment to the amount is wrong', withPayload(transfer(), 'c_transfer', another)],
    ['the encrypted amount is wrong', withPayload(transfer(), 'v_tilde')],
    ["the key of the recipient's auditor is invalid", { ...transfer(), auditorRecipient: offCurve }],
    ["the key of the recipient's auditor is invalid", { ...transfer(), auditorRecipient: identity }],
    ["the recipient's auditor cannot read the amount", withPayload(transfer(), 'v_tilde_aud_r')],
    ["the recipient's auditor cannot read the blinding", withPayload(transfer(), 'r_tilde_aud_r')],
    ["the sender's auditor cannot read the amount", withPayload(transfer(), 'v_tilde_aud_s')],
  ],
  withdraw: spendingCases(withdrawal),
  set_spender: [
    ...spendingCases(delegation),
    ['the commitment to the allowance is wrong', withPayload(delegation(), 'c_a', another)],
    ['the encrypted allowance is wrong', withPayload(delegation(), 'a_tilde')],
    ['the escrow does not begin with the ephemeral key', withEscrow(0)],
    ['the spender cannot read the delegation key', withEscrow(32)],
    ["the sender's auditor cannot read the amount", withPayload(delegation(), 'v_tilde_aud_s')],
    ["the sender's auditor cannot read the blinding of the allowance", withPayload(delegation(), 'r_a_tilde_aud_s')],
  ],
  spender_transfer: [
    ["the spender's key does not match its secret", { ...delegatedTransfer(), spenderKey: another }],
    ['the blinding is not that of the delegation', delegatedTransfer({ blinding: 5n })],
    ['call to assert_max_bit_size', delegatedTransfer({ v: LARGE + 5n, amount: LARGE / 2n })],
    ['call to assert_max_bit_size', delegatedTransfer({ v: 10n, amount: FIELD - 5n })],
    ['call to assert_max_bit_size', delegatedTransfer({ v: 10n, amount: 15n })],
    ['the opening does not match the allowance', { ...delegatedTransfer(), allowance: another }],
    ['the salt of the allowance is not new', delegatedTransfer({ sigma: 31n })],
    ['the commitment to the new allowance is wrong', withPayload(delegatedTransfer(), 'c_a_new', another)],
    ['the encrypted allowance is wrong', withPayload(delegatedTransfer(), 'a_tilde_new')],
    ['the ephemeral secret is zero', delegatedTransfer({ rE: 0n })],
    ['the ephemeral key does not match its secret', withPayload(delegatedTransfer(), 'r_e_point', another)],
    ['the commitment to the amount is wrong', withPayload(delegatedTransfer(), 'c_transfer', another)],
    ['the encrypted amount is wrong', withPayload(delegatedTransfer(), 'v_tilde')],
    ["the key of the recipient's auditor is invalid", { ...delegatedTransfer(), auditorRecipient: offCurve }],
    ["the key of the recipient's auditor is invalid", { ...delegatedTransfer(), auditorRecipient: identity }],
    ["the recipient's auditor cannot read the amount", withPayload(delegatedTransfer(), 'v_tilde_aud_r')],
    ["the recipient's auditor cannot read the blinding", withPayload(delegatedTransfer(), 'r_tilde_aud_r')],
    ["the key of the owner's auditor is invalid", { ...delegatedTransfer(), auditorSender: offCurve }],
    ["the key of the owner's auditor is invalid", { ...delegatedTransfer(), auditorSender: identity }],
    ["the owner's auditor cannot read the amount", withPayload(delegatedTransfer(), 'v_tilde_aud_s')],
    ["the owner's auditor cannot read the allowance", withPayload(delegatedTransfer(), 'a_tilde_aud_s')],
    ["the owner's auditor cannot read the blinding", withPayload(delegatedTransfer(), 'r_tilde_aud_s')],
  ],
}

describe('rejects a statement with one false equation', () => {
  const cases = Object.entries(CASES).flatMap(([circuit, list]) =>
    list.map(([reason, value]) => [circuit, reason, value]),
  )

  test.each(cases as [string, string, Statement][])('%s: %s', async (circuit, reason, statement) => {
    expect(statement.circuit).toBe(circuit)
    await expect(prover.prove(statement)).rejects.toThrow(`the statement of this ${circuit} is false: ${reason}`)
  })

  test.each(CIRCUIT_NAMES)('%s: every assertion of the circuit has a case here', async (name) => {
    const artifact = await readFile(`${FOLDER}/${name}.json`, 'utf8')
    const messages = [...artifact.matchAll(/"error_kind":"string","string":"([^"]+)"/g)].map(([, message]) => message)
    const broken = new Set((CASES[name] ?? []).map(([reason]) => reason))
    // The compiler gives the first to every program, and the second to those that decompose a scalar.
    const elsewhere = ['Stack too deep', ...(name === 'register' ? ['call to assert_max_bit_size', ZERO_VIEWING] : [])]
    expect(messages.filter((message = '') => !elsewhere.includes(message)).toSorted()).toEqual([...broken].toSorted())
  })

  test(`register: ${ZERO_VIEWING}`, async () => {
    // A separate circuit with this assertion alone.
    const sources = await mkdtemp(path.join(tmpdir(), 'sources-'))
    try {
      await cp(`${FOLDER}/source`, sources, { recursive: true })
      await writeFile(
        path.join(sources, 'register/src/main.nr'),
        `use equations::{assert_viewing_key, Generators};
        fn main(vk: Field, x: pub Field, y: pub Field) { assert_viewing_key(Generators::from_public(x), vk, [x, y]); }`,
      )
      const noir = new Noir((await compileSource(sources, 'register')) as CompiledCircuit)
      await expect(noir.execute({ vk: 0, x: 0, y: 0 })).rejects.toThrow(ZERO_VIEWING)
      const [x, y] = [another.subarray(0, 32), another.subarray(32)].map(
        (half) => `0x${Buffer.from(half).toString('hex')}`,
      )
      await expect(noir.execute({ vk: 5, x: x ?? '', y: y ?? '' })).resolves.toBeDefined()
    } finally {
      await rm(sources, { recursive: true })
    }
  })
})
