import type { xdr } from '@stellar/stellar-sdk'
import { readAccount } from '#lib/stellar/accounts.ts'
import type { Network } from '#lib/stellar/network.ts'

/** Stroops that the network holds back for each entry that an account pays the reserve of. */
const BASE_RESERVE = 5_000_000n

/**
 * What the ledger would let `address` spend on fees, in stroops: its balance without reserve and selling liabilities.
 * An account that does not exist has nothing.
 * @throws Refusal `unavailable`
 */
export async function readAvailableBalance(network: Network, address: string): Promise<bigint> {
  const { account } = await readAccount(network.server, address)
  return account ? availableBalance(account) : 0n
}

/** The same from an entry that is at hand. Never negative. */
export function availableBalance(account: xdr.AccountEntry): bigint {
  const v1 = account.ext.type === 'v1' ? account.ext.v1 : undefined
  const v2 = v1?.ext.type === 'v2' ? v1.ext.v2 : undefined
  const reserves = 2 + account.numSubEntries + (v2?.numSponsoring ?? 0) - (v2?.numSponsored ?? 0)
  const available = account.balance - BigInt(reserves) * BASE_RESERVE - (v1?.liabilities.selling ?? 0n)
  return available > 0n ? available : 0n
}

/** A ledger that is further behind than this is one of a network that has begun anew. */
const LAG = 10

/** One reading of the sponsor's balance per ledger, shared by all who ask meanwhile. */
export function openFloat(network: Network, sponsor: string): (ledger: number) => Promise<bigint> {
  let known: { ledger: number; balance: Promise<bigint> } | undefined
  return (ledger) => {
    if (!known || known.ledger < ledger || known.ledger - LAG > ledger) {
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
