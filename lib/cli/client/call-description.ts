import { Refusal } from '#lib/refusal/refusal.ts'
import { checkPolicy, checkTimeBounds, decodeInner, readIntent, type SponsorRules } from '#lib/transfers/policy.ts'
import { MAX_RESOURCE_FEE } from '#lib/wallet/transaction.ts'
import type { ClientNetwork } from './participants.ts'

/** The calls that further signers sign. A payment is none: only its preparer can read what it pays. */
const FUNCTIONS = new Set(['register', 'merge', 'set_spender', 'revoke_spender'])

/**
 * Says what a call does that another signer has built, and refuses anything but a call of the confidential token that the service
 * would sponsor now, so that nothing else is signed, and nothing that can be submitted for ever.
 * @throws Error
 */
export function describeCall(
  signedXdr: string,
  { passphrase, token, auditorId, relay }: Pick<ClientNetwork, 'passphrase' | 'token' | 'auditorId' | 'relay'>,
  now = new Date(),
): string {
  const rules: SponsorRules = {
    token,
    contracts: new Set([token]),
    functions: new Set(),
    maxFee: MAX_RESOURCE_FEE,
    controlled: new Set(),
    calls: { functions: FUNCTIONS, channels: new Set(relay?.channels), auditorId, marginLedgers: 0 },
  }
  try {
    const inner = decodeInner(signedXdr, passphrase)
    const intent = readIntent(inner, rules)
    checkPolicy(inner, intent, rules)
    checkTimeBounds(intent, Math.floor(now.getTime() / 1000))
    const { kind, account, to, liveUntilLedger, maxTime } = intent
    const words: Partial<Record<typeof kind, string>> = {
      register: `the registration of ${account}`,
      merge: `a merge of what ${account} has received`,
      set_spender: `a delegation from ${account} to ${to}, a channel of the relay, until ledger ${liveUntilLedger}, of an amount that only its preparer can read`,
      revoke_spender: `the end of the delegation from ${account} to ${to}`,
    }
    return `${words[kind] ?? kind}; valid until ${new Date(Number(maxTime) * 1000).toISOString()}`
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    throw new Error(`nothing was signed: ${error.message}`, { cause: error })
  }
}
