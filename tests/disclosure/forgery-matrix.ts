import { equalBytes } from '@noble/curves/utils.js'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { DISCLOSURE_FILES } from '#lib/disclosure/node/files.ts'
import { createDisclosureProver, type DisclosureProver, keyOf, solve } from '#lib/disclosure/prover.ts'
import { verifyDisclosure } from '#lib/disclosure/verify.ts'
import { openBackend } from '#lib/prover/backend.ts'
import { parseProgram, unpackBytecode } from '#lib/prover/circuits.ts'
import { DISCLOSURE_ROLES } from '#lib/prover/disclosure-circuits.ts'
import { parseKeySet } from '#lib/prover/key-set.ts'
import { readReferenceString } from '#lib/prover/node/reference-string.ts'
import { watchWorker } from '#lib/prover/node/worker.ts'
import { loadZeroKnowledgeVerifier } from '#lib/prover/verifier.ts'
import { archivedOf, archivedSource, type Forgery, forgeriesOf, type Received } from './forgeries.ts'
import { discloseAll, type Honest, openCase, REQUESTER } from './honest.ts'

/** The statements, each by every role except for a balance, and the forgeries with the code that each ends in. */
const MATRIX = `
forgery                                               | payment             | total               | at least            | balance         | balance at least | balance at most
a bundle of another statement                         | unknown-circuit     | unknown-circuit     | unknown-circuit     | unknown-circuit | unknown-circuit  | unknown-circuit
another secret key                                    | key-mismatch        | key-mismatch        | key-mismatch        | key-mismatch    | key-mismatch     | key-mismatch
no bundle                                             | bundle-invalid      | bundle-invalid      | bundle-invalid      | bundle-invalid  | bundle-invalid   | bundle-invalid
the bundle twice                                      | bundle-invalid      | event-repeated      | bundle-invalid      | bundle-invalid  | bundle-invalid   | bundle-invalid
a repeated event                                      | bundle-invalid      | event-repeated      | event-repeated      |                 |                  |
one event behind two references                       |                     | event-repeated      | event-repeated      |                 |                  |
an event beside a balance                             |                     |                     |                     | bundle-invalid  | bundle-invalid   | bundle-invalid
no sealed value                                       | bundle-invalid      | bundle-invalid      |                     | bundle-invalid  |                  |
a sealed value beside a threshold                     |                     |                     | bundle-invalid      |                 | bundle-invalid   | bundle-invalid
another network                                       | other-network       | other-network       | other-network       | other-network   | other-network    | other-network
an event that does not exist                          | event-not-found     | event-not-found     | event-not-found     |                 |                  |
an event that the RPC has dropped, and no archive     | event-out-of-range  | event-out-of-range  | event-out-of-range  |                 |                  |
an event that no archive has                          | event-not-found     | event-not-found     | event-not-found     |                 |                  |
an event that one of two archives invents             | archives-differ     | archives-differ     | archives-differ     |                 |                  |
an event that one of two archives changes             | archives-differ     | archives-differ     | archives-differ     |                 |                  |
an event that one of two archives withholds           | archives-differ     | archives-differ     | archives-differ     |                 |                  |
an archive’s event in a ledger that the RPC still has | archives-differ     | archives-differ     | archives-differ     |                 |                  |
an event of another contract                          | other-contract      | other-contract      | other-contract      |                 |                  |
an event that is no payment                           | wrong-event         | wrong-event         | wrong-event         |                 |                  |
a payment of strangers                                | other-account       | other-account       | other-account       |                 |                  |
a payment in the other direction                      | other-account       | other-account       | other-account       |                 |                  |
a payment of the account to itself                    | proof-invalid       | self-payment        | self-payment        |                 |                  |
a payment outside the period                          |                     | outside-period      | outside-period      |                 |                  |
an unregistered account                               | not-registered      | not-registered      | not-registered      | not-registered  | not-registered   | not-registered
an unregistered payee                                 | not-registered      | not-registered      | not-registered      |                 |                  |
an auditor whose key is unknown                       | auditor-key-unknown | auditor-key-unknown | auditor-key-unknown |                 |                  |
payments under two keys of the auditor                |                     | bundle-invalid      | bundle-invalid      |                 |                  |
another event                                         | proof-invalid       | proof-invalid       | proof-invalid       |                 |                  |
fewer payments than were proved                       |                     | proof-invalid       | proof-invalid       |                 |                  |
a slot that is filled and not counted                 |                     | proof-invalid       | proof-invalid       |                 |                  |
the statement’s circuit of another size               |                     | proof-invalid       | proof-invalid       |                 |                  |
another nonce                                         | proof-invalid       | proof-invalid       | proof-invalid       | proof-invalid   | proof-invalid    | proof-invalid
another requester                                     | proof-invalid       | proof-invalid       | proof-invalid       | proof-invalid   | proof-invalid    | proof-invalid
the key of another account                            | proof-invalid       | proof-invalid       | proof-invalid       | proof-invalid   | proof-invalid    | proof-invalid
a balance that has changed                            |                     |                     |                     | proof-invalid   | proof-invalid    | proof-invalid
a lower threshold                                     |                     |                     | proof-invalid       |                 | proof-invalid    | proof-invalid
a higher threshold                                    |                     |                     | proof-invalid       |                 | proof-invalid    | proof-invalid
another sealing key                                   | proof-invalid       | proof-invalid       |                     | proof-invalid   |                  |
another sealed value                                  | proof-invalid       | proof-invalid       |                     | proof-invalid   |                  |
a changed proof                                       | proof-invalid       | proof-invalid       | proof-invalid       | proof-invalid   | proof-invalid    | proof-invalid
a proof with a bit that bb drops                       | proof-invalid       | proof-invalid       | proof-invalid       | proof-invalid   | proof-invalid    | proof-invalid
a proof without zero knowledge                        | proof-invalid       | proof-invalid       | proof-invalid       | proof-invalid   | proof-invalid    | proof-invalid
a value of no amount, under a forged proof            | cannot-decrypt      | cannot-decrypt      |                     | cannot-decrypt  |                  |
`

const [[, ...STATEMENTS] = [], ...ROWS] = MATRIX.trim()
  .split('\n')
  .map((line) => line.split('|').map((cell) => cell.trim()))
const rolesOf = (statement: string): readonly string[] => (statement.startsWith('balance') ? [''] : DISCLOSURE_ROLES)

/** The disclosure that stands for another statement's bundle. */
const SPARE = 'balance'

/** Defines the tests of these statements by these roles: `total recipient`. */
export function testForgeries(isWanted: (variant: string) => boolean): void {
  const given = openCase()
  let honest: Map<string, Honest>
  let forgeries: Record<string, Forgery>

  const backend = openBackend({
    referenceString: () => readReferenceString('lib/prover/reference-string'),
    threads: 2,
    limitMs: 120_000,
    watchWorker,
  })

  /** Proves with the same key, but without zero knowledge. */
  const provePlainly: DisclosureProver['prove'] = async (circuit, inputs, secrets) => {
    const { RawBuffer } = await import('@aztec/bb.js')
    const { name, content } = await DISCLOSURE_FILES.readCircuit(circuit.name)
    const program = parseProgram(name, new TextDecoder().decode(content))
    const acir = await unpackBytecode(name, program.bytecode)
    const witness = await solve(program, inputs, secrets)
    const key = keyOf(parseKeySet('embedded', await DISCLOSURE_FILES.readKeySet('embedded')), circuit)
    return await backend.run(async (api) => {
      const output = await api.acirProveUltraKeccakHonk(acir, witness)
      expect(equalBytes(output.subarray(0, inputs.length), inputs)).toBe(true)
      expect(await api.acirVerifyUltraKeccakHonk(output, new RawBuffer(key))).toBe(true)
      return new Uint8Array(output.subarray(inputs.length))
    })
  }

  beforeAll(async () => {
    const prover = createDisclosureProver({ files: DISCLOSURE_FILES, backend, keySet: 'embedded' })
    honest = await discloseAll(given, prover, (variant) => isWanted(variant) || variant === SPARE)
    forgeries = forgeriesOf(given, { prover, provePlainly, all: honest })
  })
  afterAll(() => backend.destroy())

  /** The verifier is kept: it takes half a second to load. */
  let loading: ReturnType<typeof loadZeroKnowledgeVerifier> | undefined
  const loadOnce = (g2: Uint8Array) => {
    loading ??= loadZeroKnowledgeVerifier(g2)
    return loading
  }

  function verify({ request, bundles, secret = REQUESTER, source = given.ledger.source(), load = loadOnce }: Received) {
    return verifyDisclosure({ source, files: DISCLOSURE_FILES, load }, { request, secret, bundles })
  }

  function honestly(name: string): Honest {
    const found = honest.get(name)
    if (!found) throw new Error(`there is no disclosure ${name}`)
    return found
  }

  const variantsOf = (statement: string, roles = rolesOf(statement)) =>
    roles.map((role) => [statement, role].filter(Boolean).join(' ')).filter(isWanted)

  describe('verifies an honest disclosure', () => {
    test.each(variantsOf('payment'))('%s', async (name) => {
      const payments = [{ transaction: given.paid[1]?.transaction }]
      expect(await verify(honestly(name))).toMatchObject({ value: 30n, forgeable: true, payments })
    })

    test.each(variantsOf('total'))('%s', async (name) => {
      const { value, subtotals, payments } = await verify(honestly(name))
      expect([value, subtotals, payments.length]).toEqual([537n, [537n], 3])
    })

    const bounds = ['at least', 'balance at least', 'balance at most'].flatMap((statement) => variantsOf(statement))
    test.each(bounds)('%s', async (name) => {
      expect(await verify(honestly(name))).toMatchObject({ value: undefined, subtotals: [] })
    })

    test.each(variantsOf('balance'))('%s', async (name) => {
      expect(await verify(honestly(name))).toMatchObject({ value: 500n, payments: [] })
    })
  })

  test('the matrix has every forgery, and every statement has a column', () => {
    expect(ROWS.map(([name]) => name).toSorted()).toEqual(Object.keys(forgeries).toSorted())
    const variants = STATEMENTS.flatMap((statement) => variantsOf(statement))
    expect(new Set([...variants, SPARE])).toEqual(new Set(honest.keys()))
  })

  const refused = ROWS.map(([name = '', ...codes]) => {
    const cells = codes.map((code, index) => [STATEMENTS[index] ?? '', code] as const)
    return { name, cells: cells.filter(([statement, code]) => code && variantsOf(statement).length > 0) }
  })
  describe.each(refused.filter(({ cells }) => cells.length > 0))('refuses $name', ({ name, cells }) => {
    test.each(cells)('%s: %s', async (statement, code) => {
      const { forge, roles } = forgeries[name] ?? { forge: () => expect.fail(`${name} is not forged`) }
      const concerned = rolesOf(statement).filter((role) => !role || !roles || roles.some((one) => one === role))
      for (const variant of variantsOf(statement, concerned)) {
        const outcome = verify(await forge(honestly(variant)))
        await expect(outcome, variant).rejects.toMatchObject({ name: 'DisclosureError', code })
      }
    })
  })

  /** The RPC has dropped the payments, and nothing on the ledger contradicts an archive. */
  const ofPayments = ['payment', 'total', 'at least'].filter((statement) => variantsOf(statement).length > 0)
  describe.each(ofPayments)('a %s over payments that archives have', (statement) => {
    const events = given.ledger.events.map(archivedOf)

    test.each([1, 2])('verifies and names its sources: %i', async (count) => {
      const source = archivedSource(given, Array(count).fill(events))
      for (const variant of variantsOf(statement)) {
        const { payments } = await verify({ ...honestly(variant), source })
        const names = ['https://archive-0.example', 'https://archive-1.example'].slice(0, count).join(' and ')
        expect(new Set(payments.map((payment) => payment.source))).toEqual(new Set([names]))
      }
    })
  })
}
