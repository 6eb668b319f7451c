import { StrKey } from '@stellar/stellar-sdk'
import { z } from 'zod'
import { excessOf, parseJson } from '#lib/text/json.ts'
import { type Manifest, parseManifest, signaturesOn, weightOf } from '#lib/wallet/manifest.ts'
import { DisclosureError, describeMismatch } from './disclosure-error.ts'
import type { DisclosureSource } from './ledger-source.ts'
import { type Payment, paymentsIn } from './payment.ts'

const account = z.string().refine((text) => StrKey.isValidEd25519PublicKey(text), 'is not an account (G…)')

/**
 * What was signed for a run, by whom, and what was paid, for a later check. It has no amounts. Signers and weights are what the writer
 * has read from the ledger.
 */
const EVIDENCE = z.object({
  version: z.literal('confidential-payroll-run-evidence/1'),
  /** as it was signed */
  manifest: z.string(),
  /** base64 (SEP-53) */
  signatures: z.array(z.string().max(100)).max(21),
  /** the account that pays, as this ledger had it for the writer */
  account: z.object({
    address: account,
    ledger: z.int(),
    mediumThreshold: z.int().min(1).max(255),
    signers: z
      .array(z.object({ key: account, weight: z.int().min(1).max(255) }))
      .max(21)
      .refine((signers) => new Set(signers.map(({ key }) => key)).size === signers.length, 'has a signer twice'),
  }),
  /** the paying transactions, by payout */
  payments: z.array(z.object({ payout: z.uuid(), transaction: z.string().regex(/^[0-9a-f]{64}$/) })),
})
export type RunEvidence = z.output<typeof EVIDENCE>

/** A run whose evidence holds. */
export interface VerifiedRun {
  manifest: Manifest
  /** the signers who have signed, with the weights that the writer has read */
  signed: { key: string; weight: number }[]
  needed: number
  /** the ledger at which the writer read signers and weights */
  readAt: number
  payments: (Pick<Payment, 'to' | 'ledger' | 'closedAt' | 'transaction' | 'source'> & { payout: string })[]
}

/** @throws DisclosureError `evidence-invalid` */
export function parseEvidence(text: string): RunEvidence {
  const excess = excessOf(text)
  if (excess !== undefined) throw new DisclosureError('evidence-invalid', `the file ${excess}`)
  const { data, error } = EVIDENCE.safeParse(parseJson(text))
  if (data) return data
  throw new DisclosureError('evidence-invalid', `the file is no evidence of a run: ${describeMismatch(error)}`)
}

/**
 * Verifies the evidence of a run: the signatures are over this manifest, by signers whose weights reach the threshold as the writer has
 * read them, and each payment is on the ledger, from the account through the channel of its payout to the payee. Amounts are not
 * compared: no party that is not payer, payee or auditor can read them.
 * @throws DisclosureError `evidence-invalid`, `other-network`, `signatures-too-few`, `payment-differs`, and those of `source`
 */
export async function verifyRun(source: DisclosureSource, evidence: RunEvidence): Promise<VerifiedRun> {
  const { account, signatures } = evidence
  const manifest = parseManifest(evidence.manifest)
  if (!manifest || manifest.account !== account.address)
    throw new DisclosureError('evidence-invalid', 'the manifest cannot be read, or is of another account')
  if ((await source.readPassphrase()) !== manifest.passphrase)
    throw new DisclosureError('other-network', 'the run was on another network than the RPC is')
  const signed = signaturesOn(manifest, signatures, account).map(({ key, weight }) => ({ key, weight }))
  const needed = account.mediumThreshold
  if (signed.length === 0 || weightOf(signed) < needed)
    throw new DisclosureError('signatures-too-few', `the signatures have weight ${weightOf(signed)} of ${needed}`)
  const payouts = new Map(manifest.payouts.map((payout) => [payout.payout, payout]))
  const used = new Set<string>()
  const payments: VerifiedRun['payments'] = []
  for (const { payout: id, transaction } of evidence.payments) {
    const payout = payouts.get(id)
    if (!payout || used.has(transaction) || used.has(id))
      throw new DisclosureError('payment-differs', `payout ${id} is not of this run, or is named twice`)
    used.add(transaction).add(id)
    const found = paymentsIn(await source.readTransaction(transaction), manifest.token).find(
      ({ from, to, spender }) => from === manifest.account && to === payout.address && spender === payout.channel,
    )
    if (!found) throw new DisclosureError('payment-differs', `transaction ${transaction} does not pay payout ${id}`)
    const { eventIndex } = found
    // All sources have to agree about it.
    const { ledger, closedAt, source: readFrom } = await source.findEvent({ transaction, eventIndex })
    const ends = manifest.delegations.find(({ channel }) => channel === payout.channel)?.liveUntilLedger ?? 0
    if (ledger > ends) throw new DisclosureError('payment-differs', `transaction ${transaction} is later than the run`)
    payments.push({ payout: id, to: payout.address, ledger, closedAt, transaction, source: readFrom })
  }
  return { manifest, signed, needed, readAt: account.ledger, payments }
}
