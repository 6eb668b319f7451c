import type { Keypair, xdr } from '@stellar/stellar-sdk'
import { relayChannels } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import type { AccountReading, ReadAccount } from '#lib/stellar/account.ts'
import type { Network } from '#lib/stellar/network.ts'
import { isLagging } from '#lib/stellar/view.ts'
import type { SponsorRules } from './policy.ts'
import type { QuotaLimits } from './quota.ts'
import type { Tracker } from './track.ts'

/** The fee sponsor of a process: its key, its limits, and its dependencies. */
export interface Sponsor {
  keypair: Keypair
  rules: SponsorRules
  limits: QuotaLimits
  network: Network
  tracker: Tracker
  /** the addresses that the service controls: those of its keys, and the channels of every relay */
  controlledAddresses: (db: Database) => Promise<ReadonlySet<string>>
  /**
   * Resolves once the relays' channels were compared with the ledger lately: a client's payment may be one that a channel has made
   * since the backup from which the database was restored. Throws a LedgerError.
   */
  compareChannels: () => Promise<void>
  /** stroops that the sponsor may spend, as of at least the given ledger */
  readFloat: (ledger: number) => Promise<bigint>
  /** stroops that the sponsor may spend, read from the ledger now */
  readBalance: () => Promise<bigint>
  now: () => Date
}

export function openSponsor(
  parts: Omit<Sponsor, 'compareChannels' | 'controlledAddresses' | 'readFloat' | 'readBalance'> &
    Partial<Pick<Sponsor, 'compareChannels'>>,
): Sponsor {
  const { readAccount } = parts.tracker
  const address = parts.keypair.publicKey()
  return {
    compareChannels: async () => undefined,
    ...parts,
    controlledAddresses: openControlledAddresses(parts.rules.controlled, parts.now),
    readFloat: openFloat(readAccount, address),
    readBalance: () => readAvailableBalance(readAccount, address),
  }
}

/** A relay's new channel is treated as controlled after at most this long (ms). */
const REREAD_MS = 30_000

/** The addresses of the keys that this process has, `own`, and the channels of all relays, whose keys it may not have. */
function openControlledAddresses(own: ReadonlySet<string>, now: () => Date): Sponsor['controlledAddresses'] {
  let cache: { at: number; addresses: ReadonlySet<string> } | undefined
  return async (db) => {
    const at = now().getTime()
    if (!cache || at - cache.at > REREAD_MS) {
      const channels = await db.selectDistinct({ address: relayChannels.address }).from(relayChannels)
      cache = { at, addresses: new Set([...own, ...channels.map(({ address }) => address)]) }
    }
    return cache.addresses
  }
}

/** Stroops that the network holds back for each entry that an account pays the reserve of. */
const BASE_RESERVE = 5_000_000n

/** The stroops that the ledger lets `address` spend on fees: none without an account. Throws LedgerError `unavailable`. */
export const readAvailableBalance = async (read: ReadAccount, address: string): Promise<bigint> =>
  balanceOf(await read(address)).balance

const balanceOf = ({ account, latestLedger }: AccountReading) => ({
  balance: account ? availableBalance(account) : 0n,
  ledger: latestLedger,
})

/** The stroops that an account may spend on fees: its balance without reserve and selling liabilities. Never negative. */
export function availableBalance(account: xdr.AccountEntry): bigint {
  const v1 = account.ext.type === 'v1' ? account.ext.v1 : undefined
  const v2 = v1?.ext.type === 'v2' ? v1.ext.v2 : undefined
  const reserves = 2 + account.numSubEntries + (v2?.numSponsoring ?? 0) - (v2?.numSponsored ?? 0)
  const available = account.balance - BigInt(reserves) * BASE_RESERVE - (v1?.liabilities.selling ?? 0n)
  return available > 0n ? available : 0n
}

/**
 * Reads the sponsor's balance once per ledger, for all concurrent requests. A lagging node returns a balance that doesn't
 * reflect later fees, so an older reading never replaces a newer one.
 */
export function openFloat(read: ReadAccount, sponsor: string): Sponsor['readFloat'] {
  let latest: { ledger: number; balance: Promise<bigint> } | undefined
  let newest: ReturnType<typeof balanceOf> | undefined

  async function readNewest(): Promise<bigint> {
    const reading = balanceOf(await read(sponsor))
    if (!newest || !isLagging(reading.ledger, newest.ledger)) newest = reading
    return newest.balance
  }

  return (ledger) => {
    if (!latest || (latest.ledger !== ledger && !isLagging(ledger, latest.ledger))) {
      const reading = { ledger, balance: readNewest() }
      latest = reading
      reading.balance.then(
        () => {
          // It may be as of a later ledger than was known when it was asked for.
          reading.ledger = Math.max(reading.ledger, newest?.ledger ?? 0)
        },
        () => {
          if (latest === reading) latest = undefined
        },
      )
    }
    return latest.balance
  }
}
