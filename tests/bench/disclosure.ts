import { readAudit } from '#lib/disclosure/audit.ts'
import { DISCLOSURE_FILES } from '#lib/disclosure/node/files.ts'
import { openDisclosureProver } from '#lib/disclosure/node/prover.ts'
import { readStatement } from '#lib/disclosure/statement.ts'
import { verifyDisclosure } from '#lib/disclosure/verify.ts'
import { DISCLOSURE_ROLES, SLOTS } from '#lib/prover/disclosure-circuits.ts'
import { loadZeroKnowledgeVerifier } from '#lib/prover/verifier.ts'
import { PASSPHRASE } from '../disclosure/fake-ledger.ts'
import { disclose, type Honest, openCase, PERIOD, REQUESTER } from '../disclosure/honest.ts'
import type { Figure } from './directory.ts'

/** How many payments are made: encrypting them takes longer than reading them. */
const MADE = 1_000

/** How many copies of them a statement has, and how long it may take (s); an audit of both channels may take twice that. */
const STATEMENTS = [
  [1, 6],
  [10, 60],
] as const

/** Proofs of one payment and of the largest totals, their verification, and the decryption of statements. */
export async function measureDisclosure(): Promise<Figure[]> {
  const given = openCase(Array.from({ length: 27 }, (_, index) => BigInt(index + 1)))
  const prover = await openDisclosureProver(PASSPHRASE, {}, () => undefined)
  const source = given.ledger.source()
  let loading: ReturnType<typeof loadZeroKnowledgeVerifier> | undefined
  const load = (g2: Uint8Array) => {
    loading ??= loadZeroKnowledgeVerifier(g2)
    return loading
  }
  const verify = ({ request, bundles }: Honest) =>
    verifyDisclosure({ source, files: DISCLOSURE_FILES, load }, { request, secret: REQUESTER, bundles })
  const figures: Figure[] = []
  const measure = async <Result>(name: string, goal: string, work: () => Promise<Result> | Result): Promise<Result> => {
    const began = performance.now()
    const result = await work()
    figures.push({ name, found: `${(performance.now() - began).toFixed(0)} ms`, goal })
    return result
  }
  try {
    // The prover and the verifier are loaded by the first proof.
    await verify(await disclose(given, prover, 'recipient', { statement: 'payment' }))
    for (const role of DISCLOSURE_ROLES) {
      const single = await measure(`a payment, disclosed by ${role}`, '4 s on two idle cores', () =>
        disclose(given, prover, role, { statement: 'payment' }),
      )
      await measure(`its verification`, '100 ms besides the RPC', () => verify(single))
      const slots = SLOTS[role][1]
      const total = await measure(`a total of ${slots}, disclosed by ${role}`, '10 s on two idle cores', () =>
        disclose(given, prover, role, { statement: 'total', payments: slots }),
      )
      const { value } = await measure(`its verification`, '100 ms besides the RPC', () => verify(total))
      if (value !== BigInt((slots * (slots + 1)) / 2)) throw new Error('the total is wrong')
    }
  } finally {
    await prover.destroy()
  }
  const { ledger, contractor, employer } = openCase(Array.from({ length: MADE }, (_, index) => BigInt(index + 1)))
  const viewingKeys = new Map([...ledger.accounts].map(([name, { viewingKey }]) => [name, viewingKey]))
  const secrets = ledger.auditorKeys.map(({ secret }) => secret)
  for (const [copies, seconds] of STATEMENTS) {
    // Each copy is decrypted again.
    const events = Array.from({ length: copies }, (_, copy) =>
      ledger.events.map((event) => ({
        ...event,
        id: `${copy}-${event.id}`,
        transaction: `${copy}${event.transaction}`,
      })),
    ).flat()
    const input = { events, viewingKeys, period: PERIOD }
    const [count, goal] = [MADE * copies, `${seconds} s`]
    await measure(`a statement of ${count} payments received`, goal, () => readStatement({ ...contractor, ...input }))
    await measure(`a statement of ${count} payments sent`, goal, () => readStatement({ ...employer, ...input }))
    const audit = `an audit of ${count} payments, both channels`
    await measure(audit, `${2 * seconds} s`, () => readAudit(events, secrets))
  }
  return figures
}
