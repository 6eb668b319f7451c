import { Address, xdr } from '@stellar/stellar-sdk'
import type { LedgerContext } from '../state/ledger-context.ts'
import { verifyAccount } from './account-signature.ts'
import { type Authorization, callOf, type Frame } from './authorization.ts'
import type { Budget } from './budget.ts'
import { HostError, hostError } from './host-error.ts'
import { consumeNonce } from './nonce.ts'
import type { Storage } from './storage.ts'

interface Node {
  readonly authorized: xdr.SorobanAuthorizedFunction
  readonly children: Node[]
  spent: boolean
}

interface Tracker {
  readonly entry: xdr.SorobanAuthorizationEntry
  readonly address: string
  readonly root: Node
  /** for every call on the stack, the node that it used */
  readonly matches: (Node | undefined)[]
  /** whether credentials were checked and the nonce used; source-account credentials need neither */
  verified: boolean
}

/**
 * Matches every require_auth against the signed trees: same contract, function and arguments, at the right depth below a
 * node on the call stack. A node matches once. Signature, expiry and nonce are checked at the first match.
 */
export function enforceAuthorization(input: {
  readonly entries: readonly xdr.SorobanAuthorizationEntry[]
  readonly source: string
  readonly ledger: LedgerContext
  readonly storage: Storage
  readonly budget: Budget
}): Authorization {
  const trackers = input.entries.map((entry) => track(entry, input.source))
  return {
    enter: () => {
      for (const tracker of trackers) tracker.matches.push(undefined)
    },
    leave: () => {
      for (const tracker of trackers) tracker.matches.pop()
    },
    require: (address, frame) => {
      const own = trackers.filter((tracker) => tracker.address === address)
      const active = (tracker: Tracker) => tracker.matches.some((node) => node !== undefined)
      const ordered = [...own.filter(active), ...own.filter((tracker) => !active(tracker))]
      const tracker = ordered.find((candidate) => match(candidate, frame))
      if (!tracker) throw hostError('Auth', 'InvalidAction', `Unauthorized function call for address ${address}`)
      if (tracker.verified) return
      verify(tracker.entry, { ...input, address })
      tracker.verified = true
    },
    entries: () => [],
  }
}

function track(entry: xdr.SorobanAuthorizationEntry, source: string): Tracker {
  const { credentials } = entry
  const own = credentialsOf(credentials)
  return {
    entry,
    address: own === undefined ? source : Address.fromScAddress(own.address).toString(),
    root: plant(entry.rootInvocation),
    matches: [],
    verified: own === undefined,
  }
}

function plant(invocation: xdr.SorobanAuthorizedInvocation): Node {
  return { authorized: invocation.function, children: invocation.subInvocations.map(plant), spent: false }
}

/** Uses the node that matches the frame, and ties it to the frame. */
function match(tracker: Tracker, frame: Frame): boolean {
  const top = tracker.matches.length - 1
  if (tracker.matches[top] !== undefined) return false
  const parent = tracker.matches.findLast((node) => node !== undefined)
  const candidates = parent ? parent.children : [tracker.root]
  const node = candidates.find(({ spent, authorized }) => !spent && allows(authorized, frame))
  if (!node) return false
  node.spent = true
  tracker.matches[top] = node
  return true
}

function allows(authorized: xdr.SorobanAuthorizedFunction, frame: Frame): boolean {
  if (authorized.type !== 'sorobanAuthorizedFunctionTypeContractFn') return false
  return authorized.contractFn.equals(callOf(frame))
}

function credentialsOf(credentials: xdr.SorobanCredentials): xdr.SorobanAddressCredentials | undefined {
  switch (credentials.type) {
    case 'sorobanCredentialsSourceAccount':
      return undefined
    case 'sorobanCredentialsAddressWithDelegates':
      return credentials.addressWithDelegates.addressCredentials
    default:
      return credentials.value
  }
}

function verify(
  { credentials, rootInvocation }: xdr.SorobanAuthorizationEntry,
  { address, storage, ledger, budget }: { address: string; storage: Storage; ledger: LedgerContext; budget: Budget },
): void {
  if (credentials.type === 'sorobanCredentialsSourceAccount') return
  if (credentials.type === 'sorobanCredentialsAddressWithDelegates') {
    throw hostError('Auth', 'InvalidAction', 'credentials with delegates are not supported by this ledger')
  }
  const { nonce, signatureExpirationLedger, signature } = credentials.value
  const signed = { networkId: ledger.networkId, nonce, signatureExpirationLedger, invocation: rootInvocation }
  const preimage =
    credentials.type === 'sorobanCredentialsAddress'
      ? xdr.HashIdPreimage.envelopeTypeSorobanAuthorization(new xdr.HashIdPreimageSorobanAuthorization(signed))
      : xdr.HashIdPreimage.envelopeTypeSorobanAuthorizationWithAddress(
          new xdr.HashIdPreimageSorobanAuthorizationWithAddress({ ...signed, address: credentials.value.address }),
        )
  try {
    verifyAccount({ address, preimage: preimage.toXdr(), signature, storage, budget })
  } catch (cause) {
    if (!(cause instanceof HostError) || cause.label.startsWith('Error(Budget,')) throw cause
    // The host replaces the error, so that a contract can't mistake the signer's error for one of its own errors.
    const reason = `failed account authentication with error ${cause.label}: ${cause.message}`
    throw hostError('Auth', 'InvalidAction', reason)
  }
  consumeNonce({ address, nonce, expiration: signatureExpirationLedger, storage, ledger })
}
