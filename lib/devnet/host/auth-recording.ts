import { randomBytes } from 'node:crypto'
import { Address, StrKey, xdr } from '@stellar/stellar-sdk'
import type { LedgerContext } from '../state/ledger-context.ts'
import { NETWORK_LIMITS } from '../transaction/fees.ts'
import { authenticationCost, readAccount } from './account-signature.ts'
import { type Authorization, callOf, type Frame } from './authorization.ts'
import type { Budget } from './budget.ts'
import { hostError } from './host-error.ts'
import { consumeNonce } from './nonce.ts'
import { VOID } from './scval.ts'
import type { Storage } from './storage.ts'

interface Node {
  readonly frame: Frame
  readonly children: Node[]
}

interface Tracker {
  readonly address: string
  readonly root: Node
  /** for every call on the stack, the node recorded for it */
  readonly matches: (Node | undefined)[]
  /** undefined for the source account, which signs the envelope */
  readonly nonce: bigint | undefined
}

const NOT_ROOT =
  '[recording authorization only] encountered authorization not tied to the root contract invocation for an address. ' +
  'Use `require_auth()` in the top invocation or enable non-root authorization.'

/**
 * Grants and records every require_auth, for a simulation. Signatures stay void and the expiry 0. Still, the account is read,
 * one signature is metered, and the nonce is stored for the longest lifetime, because the signer chooses the
 * expiry later, and the fee must cover any.
 */
export function recordAuthorization(input: {
  readonly source: string
  readonly allowNonRoot: boolean
  /** CAP-71 credentials (ADDRESS_V2) instead of ADDRESS */
  readonly upgraded: boolean
  readonly ledger: LedgerContext
  readonly storage: Storage
  readonly budget: Budget
}): Authorization {
  const { source, allowNonRoot, upgraded, ledger, storage, budget } = input
  const trackers: Tracker[] = []
  let depth = 0

  const nonceFor = (address: string): bigint | undefined => {
    if (address === source) return undefined
    if (StrKey.isValidEd25519PublicKey(address)) readAccount(address, storage)
    budget.spend(authenticationCost(1))
    const nonce = randomBytes(8).readBigUInt64BE() >> 1n
    const expiration = ledger.sequence + NETWORK_LIMITS.maximumTtl - 1
    consumeNonce({ address, nonce, expiration, storage, ledger })
    return nonce
  }

  return {
    enter: () => {
      depth += 1
      for (const tracker of trackers) tracker.matches.push(undefined)
    },
    leave: () => {
      depth -= 1
      for (const tracker of trackers) tracker.matches.pop()
    },
    require: (address, frame) => {
      const node: Node = { frame, children: [] }
      const active = trackers.find((one) => one.address === address && one.matches.some((match) => match !== undefined))
      if (active) {
        const top = active.matches.length - 1
        if (active.matches[top]) throw hostError('Auth', 'ExistingValue', 'frame is already authorized')
        active.matches.findLast((match) => match !== undefined)?.children.push(node)
        active.matches[top] = node
        return
      }
      if (depth !== 1 && !allowNonRoot) throw hostError('Auth', 'InvalidAction', NOT_ROOT)
      const matches = Array.from({ length: depth }, (_, level) => (level === depth - 1 ? node : undefined))
      trackers.push({ address, root: node, matches, nonce: nonceFor(address) })
    },
    entries: () => trackers.map((tracker) => entryOf(tracker, upgraded)),
  }
}

function entryOf({ address, nonce, root }: Tracker, upgraded: boolean): xdr.SorobanAuthorizationEntry {
  return new xdr.SorobanAuthorizationEntry({
    credentials: credentialsOf(address, nonce, upgraded),
    rootInvocation: invocationOf(root),
  })
}

function credentialsOf(address: string, nonce: bigint | undefined, upgraded: boolean): xdr.SorobanCredentials {
  if (nonce === undefined) return xdr.SorobanCredentials.sorobanCredentialsSourceAccount()
  const credentials = new xdr.SorobanAddressCredentials({
    address: new Address(address).toScAddress(),
    nonce,
    signatureExpirationLedger: 0,
    signature: VOID,
  })
  return upgraded
    ? xdr.SorobanCredentials.sorobanCredentialsAddressV2(credentials)
    : xdr.SorobanCredentials.sorobanCredentialsAddress(credentials)
}

function invocationOf({ frame, children }: Node): xdr.SorobanAuthorizedInvocation {
  return new xdr.SorobanAuthorizedInvocation({
    function: xdr.SorobanAuthorizedFunction.sorobanAuthorizedFunctionTypeContractFn(callOf(frame)),
    subInvocations: children.map(invocationOf),
  })
}
