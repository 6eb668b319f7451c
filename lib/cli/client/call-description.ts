import { Refusal } from '#lib/refusal/refusal.ts'
import { checkPolicy, decodeInner, readIntent, type SponsorRules } from '#lib/transfers/policy.ts'
import { MAX_RESOURCE_FEE } from '#lib/wallet/transaction.ts'
import type { ClientNetwork } from './participants.ts'

const FUNCTIONS = new Set(['register', 'merge', 'set_spender', 'revoke_spender'])

/**
 * Says what a call does that another signer has built, and refuses to describe anything but a call of the confidential token that the
 * service would sponsor, so that nothing else is signed.
 * @throws Error
 */
export function describeCall(
  signedXdr: string,
  { passphrase, token, auditorId, relay }: Pick<ClientNetwork, 'passphrase' | 'token' | 'auditorId' | 'relay'>,
): string {
  const channels = new Set(relay?.channels)
  const rules = (calls?: SponsorRules['calls']): SponsorRules => ({
    token,
    contracts: new Set([token]),
    functions: new Set(['confidential_transfer']),
    maxFee: MAX_RESOURCE_FEE,
    controlled: new Set(),
    calls,
  })
  const inner = decodeInner(signedXdr, passphrase)
  const read = (given: SponsorRules) => {
    const intent = readIntent(inner, given)
    checkPolicy(inner, intent, given)
    return intent
  }
  try {
    const { kind, account, to, liveUntilLedger } = readEither(
      () => read(rules({ functions: FUNCTIONS, channels, auditorId, marginLedgers: 0 })),
      () => read(rules()),
    )
    const until =
      liveUntilLedger === undefined
        ? ''
        : ` until ledger ${liveUntilLedger}, of an amount that only its preparer can read`
    const words: Partial<Record<typeof kind, string>> = {
      transfer: `a confidential payment from ${account} to ${to}, of an amount that only its preparer can read`,
      register: `the registration of ${account}`,
      merge: `a merge of what ${account} has received`,
      set_spender: `a delegation from ${account} to ${to}, a channel of the relay,${until}`,
      revoke_spender: `the end of the delegation from ${account} to ${to}`,
    }
    return words[kind] ?? kind
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    throw new Error(`nothing was signed: ${error.message}`, { cause: error })
  }
}

function readEither<Result>(first: () => Result, second: () => Result): Result {
  try {
    return first()
  } catch (error) {
    // A transfer is no call.
    if (!(error instanceof Refusal)) throw error
    try {
      return second()
    } catch {
      throw error
    }
  }
}
