import { TransactionBuilder } from '@stellar/stellar-sdk'
import { findEnvelopes } from '#lib/submission/transfers.ts'
import { findContradictions } from '../directory/bookkeeping.ts'
import { findDiscrepancies } from '../sponsor/quota-ledger.ts'
import { type Happened, type Pair, statusOf } from './history.ts'

/** What stands on the ledger of one inner transaction. */
interface Standing {
  succeeded: boolean
  hash: string
  feeSource: string | undefined
  fee: bigint
}

/** By inner hash, everything that stands on the ledger, from its own pages. */
async function readLedger({ rpc, passphrase }: Pair['network']): Promise<Map<string, Standing[]>> {
  const standing = new Map<string, Standing[]>()
  let { transactions, cursor } = await rpc.getTransactions({
    startLedger: (await rpc.getHealth()).oldestLedger,
    pagination: { limit: 200 },
  })
  for (;;) {
    for (const { envelopeXdr, status, resultXdr } of transactions) {
      const built = TransactionBuilder.fromXdr(envelopeXdr.toXdr('base64'), passphrase)
      const isBump = 'innerTransaction' in built
      const inner = isBump ? built.innerTransaction : built
      const innerHash = Buffer.from(inner.hash()).toString('hex')
      const one = {
        succeeded: status === 'SUCCESS',
        hash: Buffer.from(built.hash()).toString('hex'),
        feeSource: isBump ? built.feeSource : undefined,
        fee: resultXdr.feeCharged,
      }
      standing.set(innerHash, [...(standing.get(innerHash) ?? []), one])
    }
    if (transactions.length < 200) return standing
    ;({ transactions, cursor } = await rpc.getTransactions({ pagination: { cursor, limit: 200 } }))
  }
}

/** Everything in which answers, rows and ledger contradict each other after a history. */
export async function findUntruths(pair: Pair, { told, signed }: Happened, sponsor: string): Promise<string[]> {
  const { db } = pair
  const ledger = await readLedger(pair.network)
  const untruths: string[] = []
  const isApplied = (hash: string) => ledger.get(hash)?.some(({ succeeded }) => succeeded) ?? false

  for (const { status, body, hash } of told) {
    const code = String(body.code)
    if (status === 200) {
      const isThere = ledger.get(hash)?.some((one) => one.succeeded && (one.hash === body.hash || hash === body.hash))
      if (!isThere) untruths.push(`200 for ${hash}, which does not stand there`)
    }
    if (['transfer-expired', 'transfer-failed', 'transfer-replaced'].includes(code) && isApplied(hash)) {
      untruths.push(`${code} for ${hash}, which succeeded`)
    }
    if (
      code === 'transfer-replaced' &&
      ![...ledger.values()].flat().some((one) => one.hash === body.hash || isApplied(String(body.hash)))
    ) {
      untruths.push(`replaced by ${body.hash}, which is not there`)
    }
  }

  const transfers = await db.query.transfers.findMany()
  for (const transfer of transfers) {
    const envelopes = await findEnvelopes(db, transfer.id)
    const applied = envelopes.filter(({ innerHash }) => isApplied(innerHash)).map(({ innerHash }) => innerHash)
    if (applied.length > 1) untruths.push(`${applied.length} payments of transfer ${transfer.id}`)
    if (transfer.status === 'open') untruths.push(`transfer ${transfer.id} is open for ever`)
    if (transfer.status === 'succeeded' && transfer.applied !== applied[0])
      untruths.push(`${transfer.id} did not succeed`)
    if ((transfer.status === 'expired' || transfer.status === 'failed') && applied.length > 0) {
      untruths.push(`transfer ${transfer.id} is ${transfer.status}, and was paid`)
    }
    const ours = envelopes.flatMap(({ innerHash }) => ledger.get(innerHash) ?? [])
    const charged = ours.reduce((sum, { feeSource, fee }) => sum + (feeSource === sponsor ? fee : 0n), 0n)
    if (transfer.sponsor === sponsor && (transfer.feeCharged ?? 0n) !== charged) {
      untruths.push(`transfer ${transfer.id} was charged ${charged}, and says ${transfer.feeCharged}`)
    }
  }
  for (const [payout, paying] of Map.groupBy(
    transfers.filter(({ status }) => status === 'succeeded'),
    (one) => one.payout,
  )) {
    if (payout !== null && paying.length > 1) untruths.push(`payout ${payout} was paid by ${paying.length} transfers`)
  }
  for (const hash of signed.keys()) {
    const transfer = await statusOf(db, hash)
    if (transfer && isApplied(hash) && transfer.status !== 'succeeded')
      untruths.push(`${hash} succeeded, unknown to us`)
  }
  const floats = await db.query.sponsorFloats.findMany()
  if (floats.some(({ held }) => held !== 0n)) untruths.push('the float is held by nothing')
  untruths.push(...(await findDiscrepancies(db)).map((found) => `quota: ${JSON.stringify(found)}`))
  untruths.push(...(await findContradictions(db)).map((found) => `books: ${JSON.stringify(found)}`))
  return untruths
}
