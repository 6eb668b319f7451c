import { discloseBalance } from '#lib/disclosure/balance-disclosure.ts'
import { type Bundle, encodeBundles, parseBundles } from '#lib/disclosure/bundle.ts'
import { readPayment } from '#lib/disclosure/payment.ts'
import { disclosePayments } from '#lib/disclosure/payment-disclosure.ts'
import type { DisclosureProver } from '#lib/disclosure/prover.ts'
import { createRequest, type DisclosureRequest } from '#lib/disclosure/request.ts'
import { DISCLOSURE_ROLES, type DisclosureRole } from '#lib/prover/disclosure-circuits.ts'
import { formatUnits } from '#lib/text/money.ts'
import { seeded, TOKEN } from '../wallet/fixtures.ts'
import { FakeLedger, PASSPHRASE } from './fake-ledger.ts'

export const PERIOD = { from: '2026-01-01T00:00:00Z', to: '2026-07-01T00:00:00Z' }
export const REQUESTER = 4_711n
export const BALANCE = { value: 500n, blinding: 99n }

/** An employer that paid a contractor these amounts, and one before the period; some of it was paid back. */
export function openCase(amounts = [7n, 30n, 500n]) {
  const ledger = new FakeLedger()
  const employer = ledger.enrol('employer', BALANCE)
  const contractor = ledger.enrol('contractor')
  const stranger = ledger.enrol('stranger')
  const paid = amounts.map((amount) => ledger.pay(employer, contractor, amount))
  const early = ledger.pay(employer, contractor, 9n, '2025-12-31T23:59:59Z')
  const elsewhere = ledger.pay(stranger, stranger, 11n)
  const back = ledger.pay(contractor, employer, 2n)
  const toItself = [employer, contractor].map((account) => ledger.pay(account, account, 11n))
  return { ledger, employer, contractor, stranger, amounts, paid, early, elsewhere, back, toItself }
}

export type Case = ReturnType<typeof openCase>

/** A verified disclosure, before a test changes a part of it. */
export interface Honest {
  request: DisclosureRequest
  bundles: Bundle[]
  /** the prover's inputs for each bundle */
  proved: Parameters<DisclosureProver['prove']>[]
}

/** A prover that records its inputs. */
function recording(prover: DisclosureProver) {
  const proved: Honest['proved'] = []
  const prove: DisclosureProver['prove'] = async (...given) => {
    proved.push(given)
    return await prover.prove(...given)
  }
  return { prover: { prove }, proved }
}

const shared = { network: PASSPHRASE, token: TOKEN }
const isInbound = (role: DisclosureRole) => role === 'recipient' || role === 'auditor-recipient'

const discloserOf = ({ ledger, employer, contractor }: Case, role: DisclosureRole) => {
  if (role === 'recipient') return { keys: contractor.keys }
  if (role === 'sender') return { keys: employer.keys }
  return { auditorSecrets: ledger.auditorKeys.map(({ secret }) => secret) }
}

/** Answers a request about one payment, or about the total of the period. */
export async function disclose(
  given: Case,
  prover: DisclosureProver,
  role: DisclosureRole,
  about: { statement: 'payment' } | { statement: 'total'; atLeast?: bigint; payments?: number },
): Promise<Honest> {
  const { ledger, employer, contractor, paid } = given
  const random = seeded(`${role} ${about.statement}`)
  const account = (isInbound(role) ? contractor : employer).address
  const ofRole = { ...shared, account, role }
  const request = createRequest(
    REQUESTER,
    about.statement === 'payment'
      ? { ...ofRole, statement: 'payment' }
      : {
          ...ofRole,
          statement: 'total',
          period: PERIOD,
          ...(about.atLeast !== undefined && { atLeast: formatUnits(about.atLeast) }),
        },
    random,
  )
  if (request.statement === 'balance') throw new Error('unreachable')
  const events = about.statement === 'payment' ? paid.slice(1, 2) : paid.slice(0, about.payments)
  const payments = events.map((event) => readPayment(event, TOKEN))
  const { proved, prover: recorder } = recording(prover)
  const context = { source: ledger.source(), prover: recorder, random }
  const { bundles } = await disclosePayments(context, request, discloserOf(given, role), payments)
  return { request, bundles: parseBundles(encodeBundles(bundles)), proved }
}

export async function discloseOwnBalance(
  { ledger, employer }: Case,
  prover: DisclosureProver,
  threshold: { atLeast?: string; atMost?: string },
): Promise<Honest> {
  const random = seeded(`balance ${JSON.stringify(threshold)}`)
  const question = { ...shared, account: employer.address, statement: 'balance', ...threshold } as const
  const request = createRequest(REQUESTER, question, random)
  if (request.statement !== 'balance') throw new Error('unreachable')
  const { proved, prover: recorder } = recording(prover)
  const context = { source: ledger.source(), prover: recorder, random }
  return { request, bundles: [await discloseBalance(context, request, employer.keys, BALANCE)], proved }
}

/** An honest disclosure of every statement that is wanted, with the smaller circuit of each total. */
export async function discloseAll(
  given: Case,
  prover: DisclosureProver,
  isWanted: (variant: string) => boolean,
): Promise<Map<string, Honest>> {
  const all = new Map<string, Honest>()
  const add = async (variant: string, make: () => Promise<Honest>) => {
    if (isWanted(variant)) all.set(variant, await make())
  }
  for (const role of DISCLOSURE_ROLES) {
    await add(`payment ${role}`, () => disclose(given, prover, role, { statement: 'payment' }))
    await add(`total ${role}`, () => disclose(given, prover, role, { statement: 'total' }))
    await add(`at least ${role}`, () => disclose(given, prover, role, { statement: 'total', atLeast: 520n }))
  }
  await add('balance', () => discloseOwnBalance(given, prover, {}))
  await add('balance at least', () => discloseOwnBalance(given, prover, { atLeast: '0.0000500' }))
  await add('balance at most', () => discloseOwnBalance(given, prover, { atMost: '0.0000500' }))
  return all
}
