import { TransactionBuilder } from '@stellar/stellar-sdk'
import type { TestNetwork } from '#lib/cli/client/participants.ts'

/** The record of one inner transaction on the ledger. */
export interface Standing {
  succeeded: boolean
  ledger: number
  hash: string
  /** the account of the inner transaction */
  source: string
  feeSource: string | undefined
  fee: bigint
}

/** All applied transactions by inner hash, from the ledger's pages. Pages are read once. */
export type ReadLedger = () => Promise<Map<string, Standing[]>>

const PAGE = 200

export function openLedgerPages({ rpc, passphrase }: TestNetwork): ReadLedger {
  const standing = new Map<string, Standing[]>()
  let cursor: string | undefined
  return async () => {
    for (;;) {
      const page = await rpc.getTransactions(
        cursor === undefined
          ? { startLedger: (await rpc.getHealth()).oldestLedger, pagination: { limit: PAGE } }
          : { pagination: { cursor, limit: PAGE } },
      )
      for (const { envelopeXdr, status, resultXdr, ledger } of page.transactions) {
        const built = TransactionBuilder.fromXdr(envelopeXdr.toXdr('base64'), passphrase)
        const isBump = 'innerTransaction' in built
        const inner = isBump ? built.innerTransaction : built
        const innerHash = Buffer.from(inner.hash()).toString('hex')
        const one = {
          succeeded: status === 'SUCCESS',
          ledger,
          hash: Buffer.from(built.hash()).toString('hex'),
          source: inner.source,
          feeSource: isBump ? built.feeSource : undefined,
          fee: resultXdr.feeCharged,
        }
        standing.set(innerHash, [...(standing.get(innerHash) ?? []), one])
      }
      if (page.cursor) cursor = page.cursor
      if (page.transactions.length < PAGE) return standing
    }
  }
}
