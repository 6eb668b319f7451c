import type { xdr } from '@stellar/stellar-sdk'
import { readAccount } from '#lib/stellar/accounts.ts'
import { isLagging } from '#lib/stellar/lag.ts'
import type { Network } from '#lib/stellar/network.ts'

/** Stroops that the network holds back for each entry that an account pays the reserve of. */
const BASE_RESERVE = 5_000_000n

/** Stroops that an account may spend on fees, as of a ledger. */
interface Reading {
  balance: bigint
  ledger: number
}

/**
 * What the ledger would let `address` spend on fees, in stroops: its balance without reserve and selling liabilities.
 * An account that does not exist has nothing.
 * @throws Refusal `unavailable`
 */
export async function readAvailableBalance(network: Network, address: string): Promise<bigint> {
  return (await read(network, address)).balance
}

async function read(network: Network, address: string): Promise<Reading> {
  const { account, latestLedger } = await readAccount(network.server, address)
  return { balance: account ? availableBalance(account) : 0n, ledger: latestLedger }
}

/** The same from an entry that is at hand. Never negative. */
export function availableBalance(account: xdr.AccountEntry): bigint {
  const v1 = account.ext.type === 'v1' ? account.ext.v1 : undefined
  const v2 = v1?.ext.type === 'v2' ? v1.ext.v2 : undefined
  const reserves = 2 + account.numSubEntries + (v2?.numSponsoring ?? 0) - (v2?.numSponsored ?? 0)
  const available = account.balance - BigInt(reserves) * BASE_RESERVE - (v1?.liabilities.selling ?? 0n)
  return available > 0n ? available : 0n
}

/**
 * One reading of the sponsor's balance per ledger, shared by all who ask meanwhile. A node that lags gives a balance from
 * which later fees have not been taken, so an older reading never stands for a newer one.
 */
export function openFloat(network: Network, sponsor: string): (ledger: number) => Promise<bigint> {
  let known: { ledger: number; balance: Promise<bigint> } | undefined
  let newest: Reading | undefined

  async function readNewest(): Promise<bigint> {
    const reading = await read(network, sponsor)
    if (!newest || !isLagging(reading.ledger, newest.ledger)) newest = reading
    return newest.balance
  }

  return (ledger) => {
    if (!known || (known.ledger !== ledger && !isLagging(ledger, known.ledger))) {
      const reading = { ledger, balance: readNewest() }
      known = reading
      reading.balance.catch(() => {
        if (known === reading) known = undefined
      })
    }
    return known.balance
  }
}
