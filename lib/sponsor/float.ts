import { Keypair, xdr } from '@stellar/stellar-sdk'
import type { Network } from '#lib/ledger/network.ts'
import { Refusal } from '#lib/refusal.ts'

/** Stroops that the network holds back for each entry that an account pays the reserve of. */
const BASE_RESERVE = 5_000_000n

/**
 * What the ledger would let `address` spend on fees, in stroops: its balance without reserve and selling liabilities.
 * An account that does not exist has nothing.
 * @throws Refusal `unavailable`
 */
export async function readAvailableBalance(network: Network, address: string): Promise<bigint> {
  const accountId = Keypair.fromPublicKey(address).xdrAccountId()
  const key = xdr.LedgerKey.account(new xdr.LedgerKeyAccount({ accountId }))
  const { entries, latestLedger } = await network.server.getLedgerEntries(key).catch((cause: unknown) => {
    throw new Refusal('unavailable', 'the ledger cannot be reached', { cause })
  })
  // The SDK reads an answer without entries as an empty one; one that names no ledger is not an answer at all.
  if (!Number.isSafeInteger(latestLedger)) throw new Refusal('unavailable', 'the RPC answer names no ledger')
  const entry = entries[0]?.val
  if (!entry) return 0n
  if (entry.type !== 'account' || !entry.value.accountId.equals(accountId)) {
    throw new Refusal('unavailable', 'the ledger gave another entry than was asked for')
  }
  return availableBalance(entry.value)
}

/** The same from an entry that is at hand. Never negative. */
export function availableBalance(account: xdr.AccountEntry): bigint {
  const v1 = account.ext.type === 'v1' ? account.ext.v1 : undefined
  const v2 = v1?.ext.type === 'v2' ? v1.ext.v2 : undefined
  const reserves = 2 + account.numSubEntries + (v2?.numSponsoring ?? 0) - (v2?.numSponsored ?? 0)
  const available = account.balance - BigInt(reserves) * BASE_RESERVE - (v1?.liabilities.selling ?? 0n)
  return available > 0n ? available : 0n
}

/** One reading of the sponsor's balance per ledger, shared by all who ask meanwhile. */
export function openFloat(network: Network, sponsor: string): (ledger: number) => Promise<bigint> {
  let known: { ledger: number; balance: Promise<bigint> } | undefined
  return (ledger) => {
    if (!known || known.ledger < ledger) {
      const balance = readAvailableBalance(network, sponsor)
      const reading = { ledger, balance }
      known = reading
      balance.catch(() => {
        if (known === reading) known = undefined
      })
    }
    return known.balance
  }
}
