import { readDelegations } from './account.ts'
import { syncBalance } from './balance.ts'
import { buildDelegation, buildMerge, buildRevocation } from './calls.ts'
import { decryptAllowance } from './decryption.ts'
import type { Deployment } from './deployment.ts'
import { readAccountEvents } from './events.ts'
import { type AnyHolder, deriveDelegationKey } from './keys.ts'
import type { SubmitCall } from './transaction.ts'
import { WalletError } from './wallet-error.ts'

/** A delegation as its owner reads it. */
export interface Delegation {
  spender: string
  /** base units that the spender may still pay; undefined if the owner's keys do not open it */
  left: bigint | undefined
  /** the last ledger in which the spender may pay */
  liveUntilLedger: number
}

/** The owner's delegations to these spenders, and the ledger of the response. */
export async function readOwnDelegations(
  deployment: Deployment,
  { address, keys }: Pick<AnyHolder, 'address' | 'keys'>,
  spenders: readonly string[],
): Promise<{ delegations: Delegation[]; latestLedger: number }> {
  const pairs = spenders.map((spender) => ({ owner: address, spender }))
  const { delegations, latestLedger } = await readDelegations(deployment, pairs)
  return {
    latestLedger,
    delegations: spenders.flatMap((spender, index) => {
      const entry = delegations[index]
      if (!entry) return []
      const left = decryptAllowance(deriveDelegationKey(keys.vk, spender), { ...entry })?.value
      return [{ spender, left, liveUntilLedger: entry.live_until_ledger }]
    }),
  }
}

/** Every spender that the owner has delegated to, with the last ledgers of those delegations. */
export async function readPastDelegations(
  deployment: Deployment,
  { address }: Pick<AnyHolder, 'address'>,
): Promise<Map<string, number[]>> {
  const past = new Map<string, number[]>()
  const { events } = await readAccountEvents(deployment, address)
  for (const { name, addresses, fields } of events) {
    const [owner, spender] = addresses
    if (name !== 'set_spender' || owner !== address || spender === undefined) continue
    const ledger = fields.live_until_ledger
    past.set(spender, [...(past.get(spender) ?? []), ...(typeof ledger === 'number' ? [ledger] : [])])
  }
  return past
}

/** The escrow that a channel needs for its payouts. */
export interface Escrow {
  spender: string
  /** base units */
  amount: bigint
  /** how many ledgers from now it must last at least, and how many a new delegation lasts */
  leastLedgers: number
  ledgers: number
}

/** How many times a delegation is attempted: each attempt first reads the ledger. */
const ATTEMPTS = 6

/**
 * Makes sure that the spender may pay the amount. An existing delegation that is large and long enough is kept.
 * Otherwise it is revoked, and a new one is made. After an interruption, a second call continues from the ledger's
 * state.
 */
export async function ensureEscrow(
  deployment: Deployment,
  holder: AnyHolder,
  { spender, amount, leastLedgers, ledgers }: Escrow,
  { submit, say }: { submit: SubmitCall; say: (line: string) => void },
): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    const { delegations, latestLedger } = await readOwnDelegations(deployment, holder, [spender])
    const [existing] = delegations
    const isEnough = existing?.left !== undefined && existing.left >= amount
    if (isEnough && existing.liveUntilLedger >= latestLedger + leastLedgers) return
    try {
      if (existing) {
        say(`Revoking the delegation to ${spender}`)
        await submit((await buildRevocation(deployment, holder.signer, spender)).signedXdr)
        continue
      }
      const opening = await ensureSpendable(deployment, holder, amount, submit)
      // A manifest names a delegation by this ledger, so no two delegations of a pair may have the same one.
      const past = (await readPastDelegations(deployment, holder)).get(spender) ?? []
      const liveUntilLedger = Math.max(latestLedger + ledgers, ...past.map((ledger) => ledger + 1))
      say(`Delegating to ${spender} until ledger ${liveUntilLedger}`)
      const delegation = { spender, amount, liveUntilLedger, opening }
      await submit((await buildDelegation(deployment, holder, delegation)).signedXdr)
    } catch (error) {
      // A call of an interrupted attempt may have been applied in the meantime; the next round will find out.
      if (attempt === ATTEMPTS || (error instanceof WalletError && !MAY_PASS.has(error.code))) throw error
      say(`Trying again: ${error instanceof Error ? error.message : error}`)
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
    }
  }
}

const RETRY_MS = 500

/** The errors of a wallet that a call in flight explains. */
const MAY_PASS: ReadonlySet<string> = new Set(['would-fail', 'balance-changed'])

/** The opening of a spendable balance of at least `amount`, after a merge if that is needed. */
async function ensureSpendable(deployment: Deployment, holder: AnyHolder, amount: bigint, submit: SubmitCall) {
  const balance = await syncBalance(deployment, holder)
  if (balance.spendable.value >= amount || balance.receiving.value === 0n) return balance.spendable
  await submit((await buildMerge(deployment, holder.signer)).signedXdr)
  return (await syncBalance(deployment, holder)).spendable
}

/** Revokes the delegations to these spenders that still exist. Resolves to the returned amount, in base units. */
export async function revokeAll(
  deployment: Deployment,
  holder: AnyHolder,
  spenders: readonly string[],
  submit: SubmitCall,
): Promise<bigint> {
  let returned = 0n
  for (const spender of spenders) {
    const [existing] = (await readOwnDelegations(deployment, holder, [spender])).delegations
    if (!existing) continue
    await submit((await buildRevocation(deployment, holder.signer, spender)).signedXdr)
    returned += existing.left ?? 0n
  }
  return returned
}
