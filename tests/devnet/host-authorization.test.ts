import { createHash } from 'node:crypto'
import { Address, buildAuthorizationEntryPreimage, type Keypair, xdr } from '@stellar/stellar-sdk'
import { describe, expect, it } from 'vitest'
import { recordAuthorization } from '#lib/devnet/host/auth-recording.ts'
import { openBudget } from '#lib/devnet/host/budget.ts'
import { nonceKey } from '#lib/devnet/host/entry-key.ts'
import { HostError } from '#lib/devnet/host/host-error.ts'
import type { InvocationResult } from '#lib/devnet/host/invocation.ts'
import { openStorage } from '#lib/devnet/host/storage.ts'
import {
  amount,
  apply,
  callOf,
  contractor,
  employer,
  enforce,
  g,
  keypair,
  label,
  ledger,
  type Network,
  openNetwork,
  passphrase,
  putAccount,
  type Request,
  record,
  stranger,
} from './host-fixture.ts'
import { depositRequest, fund, mergeRequest, registerRequest } from './host-payload.ts'

const INVALID = 'Error(Auth, InvalidAction)'
const EXPIRATION = ledger.sequence + 100

/** One signed entry, any part of which a case may replace. */
interface Signed {
  network: Network
  /** the invocation in the entry, and the call */
  authorized: xdr.SorobanAuthorizedInvocation
  request: Request
  address: string
  signers: Keypair[]
  credentials: 'sorobanCredentialsAddress' | 'sorobanCredentialsAddressV2'
  /** the signed preimage */
  payload: 'sorobanCredentialsAddress' | 'sorobanCredentialsAddressV2'
  nonce: bigint
  expiration: number
  signedPassphrase: string
  /** changes the signature value */
  bend(signature: xdr.ScVal): xdr.ScVal
}

/** A transaction of the employer in which a separate entry authorizes the contractor's merge. */
function valid(): Signed {
  const network = openNetwork()
  fund(network, employer, contractor)
  const request = { ...mergeRequest(network, contractor), source: employer }
  return {
    network,
    request,
    authorized: invocation(request),
    address: contractor.publicKey(),
    signers: [contractor],
    credentials: 'sorobanCredentialsAddressV2',
    payload: 'sorobanCredentialsAddressV2',
    nonce: 7n,
    expiration: EXPIRATION,
    signedPassphrase: passphrase,
    bend: (signature) => signature,
  }
}

function invocation(request: Omit<Request, 'source'>, subInvocations: xdr.SorobanAuthorizedInvocation[] = []) {
  return new xdr.SorobanAuthorizedInvocation({
    function: xdr.SorobanAuthorizedFunction.sorobanAuthorizedFunctionTypeContractFn(callOf(request)),
    subInvocations,
  })
}

function entryOf(signed: Signed): xdr.SorobanAuthorizationEntry {
  const { authorized, address, nonce, expiration, signers, bend } = signed
  const build = (kind: Signed['credentials'], signature: xdr.ScVal) =>
    new xdr.SorobanAuthorizationEntry({
      credentials: xdr.SorobanCredentials[kind](
        new xdr.SorobanAddressCredentials({
          address: new Address(address).toScAddress(),
          nonce,
          signatureExpirationLedger: expiration,
          signature,
        }),
      ),
      rootInvocation: authorized,
    })
  const unsigned = build(signed.payload, xdr.ScVal.scvVoid())
  const preimage = buildAuthorizationEntryPreimage(unsigned, expiration, signed.signedPassphrase)
  const hash = createHash('sha256').update(preimage.toXdr()).digest()
  const signatures = signers
    .toSorted((left, right) => Buffer.compare(left.rawPublicKey(), right.rawPublicKey()))
    .map((signer) => signatureOf(signer.rawPublicKey(), signer.sign(hash)))
  return build(signed.credentials, bend(xdr.ScVal.scvVec(signatures)))
}

function signatureOf(publicKey: Uint8Array, signature: Uint8Array): xdr.ScVal {
  const entry = (name: string, value: Uint8Array) =>
    new xdr.ScMapEntry({ key: xdr.ScVal.scvSymbol(name), val: xdr.ScVal.scvBytes(value) })
  return xdr.ScVal.scvMap([entry('public_key', publicKey), entry('signature', signature)])
}

function run(changes: (signed: Signed) => Partial<Signed> = () => ({})): InvocationResult {
  const signed = valid()
  const perturbed = { ...signed, ...changes(signed) }
  return enforce(perturbed.network, perturbed.request, { auth: [entryOf(perturbed)] })
}

const itemsOf = (signature: xdr.ScVal): xdr.ScVal[] => (signature.type === 'scvVec' ? (signature.vec ?? []) : [])
const V1 = 'sorobanCredentialsAddress'

/** The contractor's account with some fields replaced. */
const withAccount =
  (fields: Partial<xdr.AccountEntry>, changes: Partial<Signed> = {}) =>
  ({ network }: Signed): Partial<Signed> => {
    putAccount(network.state, contractor.publicKey(), fields)
    return changes
  }
const withSignature = (bend: (items: xdr.ScVal[]) => xdr.ScVal[]) => ({
  bend: (signature: xdr.ScVal) => xdr.ScVal.scvVec(bend(itemsOf(signature))),
})
/** Makes the entry authorize a different call. */
const withCall =
  (change: Partial<Request>, isBelow = false) =>
  ({ request, authorized }: Signed) => ({
    authorized: invocation({ ...request, ...change }, isBelow ? [authorized] : []),
  })
const crowd = Array.from({ length: 20 }, (_, index) => keypair(`signer ${index}`))

type Case = [string, (signed: Signed) => Partial<Signed>, string?]

describe('an entry signed by the address', () => {
  it('is accepted, and its nonce is stored until it expires', () => {
    const signed = valid()
    const result = enforce(signed.network, signed.request, { auth: [entryOf(signed)] })
    expect(label(result)).toBe('')
    const nonce = signed.network.state.get(nonceKey(contractor.publicKey(), 7n).id)
    // the later of the expiry and the shortest lifetime of a temporary entry
    expect(nonce?.liveUntil).toBe(ledger.sequence + 720 - 1)
  })

  it.each<Case>([
    ['V1 credentials with the V1 payload', () => ({ credentials: V1, payload: V1 })],
    ['the ledger of its expiry', () => ({ expiration: ledger.sequence })],
    ['the last ledger that an expiry may name', () => ({ expiration: ledger.sequence + 3_110_400 - 1 })],
    [
      'a signer whose weight is just the medium threshold',
      withAccount(
        { thresholds: thresholds(1, 0, 5, 9), signers: [signerWithWeight(stranger, 5)] },
        { signers: [stranger] },
      ),
    ],
    [
      'two signers who reach the threshold together',
      withAccount(
        { thresholds: thresholds(2, 0, 5, 9), signers: [signerWithWeight(stranger, 3)] },
        { signers: [stranger, contractor] },
      ),
    ],
    [
      'twenty signers',
      withAccount({ signers: crowd.map((signer) => signerWithWeight(signer, 1)) }, { signers: crowd }),
    ],
    ['a node that is never required', ({ request, authorized }) => ({ authorized: invocation(request, [authorized]) })],
  ])('is accepted with %s', (_, changes) => {
    expect(label(run(changes))).toBe('')
  })

  it.each<Case>([
    ['another argument', withCall({ args: [g(employer)] })],
    ['an extra argument', withCall({ args: [g(contractor), amount(1n)] })],
    ['another function', withCall({ name: 'deposit' })],
    ['another contract', (signed) => withCall({ contract: signed.network.contracts.native })(signed)],
    ['the right call at the wrong depth', withCall({ name: 'deposit' }, true)],
    ['another address', () => ({ address: stranger.publicKey(), signers: [stranger] })],
    ['a foreign signer', () => ({ signers: [stranger] })],
    ['a foreign signer in addition to the right one', () => ({ signers: [contractor, stranger] })],
    ['V1 credentials with a V2 payload', () => ({ credentials: V1 })],
    ['V2 credentials with a V1 payload', () => ({ payload: V1 })],
    ['a signature for another network', () => ({ signedPassphrase: 'Test SDF Network ; September 2015' })],
    ['an expiry that has passed', () => ({ expiration: ledger.sequence - 1 }), 'Error(Auth, InvalidInput)'],
    ['an expiry beyond the maximum', () => ({ expiration: ledger.sequence + 3_110_400 }), 'Error(Auth, InvalidInput)'],
    ['a weight below the medium threshold', withAccount({ thresholds: thresholds(1, 0, 2, 0) })],
    ['a master key without weight', withAccount({ thresholds: thresholds(0, 0, 0, 0) })],
    [
      'a missing account',
      ({ network }, gone = keypair('nobody'), merge = mergeRequest(network, gone)) => ({
        address: gone.publicKey(),
        signers: [gone],
        request: { ...merge, source: employer },
        authorized: invocation(merge),
      }),
    ],
    ['no signature', () => ({ signers: [] })],
    ['a void signature', () => ({ bend: () => xdr.ScVal.scvVoid() })],
    ['the signature twice', () => withSignature((items) => [...items, ...items])],
    [
      'signatures in descending order',
      withAccount(
        { signers: [signerWithWeight(stranger, 1)] },
        { signers: [stranger, contractor], ...withSignature((items) => items.toReversed()) },
      ),
    ],
    [
      'a flipped bit in the signature',
      () => ({
        bend: (signature) => {
          const bytes = signature.toXdr()
          bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1
          return xdr.ScVal.fromXdr(bytes)
        },
      }),
    ],
    [
      'more than twenty signatures',
      withAccount({ signers: crowd.map((signer) => signerWithWeight(signer, 1)) }, { signers: [contractor, ...crowd] }),
    ],
    [
      'a third field in a signature',
      () =>
        withSignature(([first]) => {
          const extra = new xdr.ScMapEntry({ key: xdr.ScVal.scvSymbol('weight'), val: amount(1n) })
          return [xdr.ScVal.scvMap([...(first?.type === 'scvMap' ? (first.map ?? []) : []), extra])]
        }),
    ],
  ])('fails with %s', (_, changes, error = INVALID) => {
    expect(label(run(changes))).toBe(error)
  })

  it('is rejected the second time: its nonce was used', () => {
    const signed = valid()
    const auth = [entryOf(signed)]
    expect(label(enforce(signed.network, signed.request, { auth }))).toBe('')
    expect(label(enforce(signed.network, signed.request, { auth }))).toBe('Error(Auth, ExistingValue)')
    const next = [entryOf({ ...signed, nonce: 8n })]
    expect(label(enforce(signed.network, signed.request, { auth: next }))).toBe('')
  })

  it('allows two addresses to use the same nonce', () => {
    const signed = valid()
    const other = { ...mergeRequest(signed.network, employer), source: contractor }
    enforce(signed.network, signed.request, { auth: [entryOf(signed)] })
    const theirs = {
      ...signed,
      request: other,
      authorized: invocation(other),
      address: employer.publicKey(),
      signers: [employer],
    }
    expect(label(enforce(signed.network, other, { auth: [entryOf(theirs)] }))).toBe('')
  })

  it('reports an invalid signature in the event log', () => {
    const result = run(() => ({ signers: [stranger] }))
    expect(result.ok ? '' : result.error).toContain('failed account authentication with error Error(Contract, #5)')
  })

  it('rejects credentials with delegates', () => {
    const signed = valid()
    const entry = entryOf(signed)
    if (entry.credentials.type !== 'sorobanCredentialsAddressV2') throw new Error('another arm')
    const addressCredentials = entry.credentials.addressV2
    const delegated = new xdr.SorobanAuthorizationEntry({
      rootInvocation: entry.rootInvocation,
      credentials: xdr.SorobanCredentials.sorobanCredentialsAddressWithDelegates(
        new xdr.SorobanAddressCredentialsWithDelegates({ addressCredentials, delegates: [] }),
      ),
    })
    const result = enforce(signed.network, signed.request, { auth: [delegated] })
    expect(label(result)).toBe(INVALID)
    expect(result.ok ? '' : result.error).toContain('delegates are not supported')
  })
})

describe('credentials of the source account', () => {
  const entry = (authorized: xdr.SorobanAuthorizedInvocation) =>
    new xdr.SorobanAuthorizationEntry({
      credentials: xdr.SorobanCredentials.sorobanCredentialsSourceAccount(),
      rootInvocation: authorized,
    })

  function deposit() {
    const network = openNetwork()
    apply(network, registerRequest(network, contractor, 21n))
    const request = depositRequest(network, employer, contractor, 5n)
    const args = [g(employer), new Address(network.contracts.token).toScVal(), amount(5n)]
    const transfer = invocation({ contract: network.contracts.underlying, name: 'transfer', args })
    return { network, request, transfer }
  }

  it('authorize the source, including a nested call', () => {
    const { network, request, transfer } = deposit()
    expect(label(enforce(network, request, { auth: [entry(invocation(request, [transfer]))] }))).toBe('')
  })

  it('do not authorize a nested call outside the tree', () => {
    const { network, request } = deposit()
    expect(label(enforce(network, request, { auth: [entry(invocation(request))] }))).toBe(INVALID)
  })

  it('authorize a nested call by a separate entry', () => {
    const { network, request, transfer } = deposit()
    expect(label(enforce(network, request, { auth: [entry(invocation(request)), entry(transfer)] }))).toBe('')
  })

  it('do not authorize another account', () => {
    const { network, request, transfer } = deposit()
    const sent = { ...request, source: stranger }
    expect(label(enforce(network, sent, { auth: [entry(invocation(request, [transfer]))] }))).toBe(INVALID)
  })

  it('are required: without an entry, nothing is authorized', () => {
    const { network, request } = deposit()
    expect(label(enforce(network, request))).toBe(INVALID)
  })
})

describe('recording', () => {
  it('records source-account credentials, nested calls included', () => {
    const network = openNetwork()
    apply(network, registerRequest(network, contractor, 21n))
    const result = record(network, depositRequest(network, employer, contractor, 5n))
    if (!result.ok) throw new Error(result.error)
    expect(result.auth).toHaveLength(1)
    const [entry] = result.auth
    expect(entry?.credentials.type).toBe('sorobanCredentialsSourceAccount')
    expect(entry?.rootInvocation.subInvocations).toHaveLength(1)
  })

  it.each([
    [true, 'sorobanCredentialsAddressV2'],
    [false, 'sorobanCredentialsAddress'],
  ] as const)('asks other accounts for a signature (upgraded: %s)', (upgraded, type) => {
    const network = openNetwork()
    apply(network, registerRequest(network, contractor, 21n))
    const request = { ...mergeRequest(network, contractor), source: employer }
    const result = record(network, request, { kind: 'record', allowNonRoot: false, upgraded })
    if (!result.ok) throw new Error(result.error)
    const credentials = result.auth[0]?.credentials
    if (credentials?.type !== type) throw new Error(`recorded ${credentials?.type}`)
    const { address, nonce, signature, signatureExpirationLedger } = credentials.value
    expect(Address.fromScAddress(address).toString()).toBe(contractor.publicKey())
    expect(nonce).toBeGreaterThanOrEqual(0n)
    expect(signatureExpirationLedger).toBe(0)
    expect(signature.type).toBe('scvVoid')
    const written = result.footprint.readWrite.map((key) => key.toXdr('base64'))
    expect(written).toContain(nonceKey(contractor.publicKey(), nonce).id)
    expect(result.footprint.readOnly.map(({ type }) => type)).toContain('account')
  })

  it('records an entry that is accepted once signed, with the recorded footprint', () => {
    const signed = valid()
    const recorded = record(signed.network, signed.request)
    if (!recorded.ok) throw new Error(recorded.error)
    const credentials = recorded.auth[0]?.credentials
    if (credentials?.type !== 'sorobanCredentialsAddressV2') throw new Error('another arm')
    const auth = [entryOf({ ...signed, nonce: credentials.addressV2.nonce })]
    expect(label(enforce(signed.network, signed.request, { auth, footprint: recorded.footprint }))).toBe('')
  })

  it.each([
    [false, INVALID],
    [true, ''],
  ])('grants authorizations outside the root call only in the mode that allows it (%s)', (allowNonRoot, expected) => {
    const { state, contracts } = openNetwork()
    const storage = openStorage(state.fork(), ledger.sequence, 'record')
    const source = employer.publicKey()
    const recorder = recordAuthorization({
      source,
      allowNonRoot,
      upgraded: true,
      ledger,
      storage,
      budget: openBudget(1_000_000),
    })
    const frame = { contract: contracts.token, name: 'merge', args: [g(contractor)] }
    recorder.enter()
    recorder.enter()
    let error = ''
    try {
      recorder.require(contractor.publicKey(), frame)
    } catch (cause) {
      error = cause instanceof HostError ? cause.label : String(cause)
    }
    expect(error).toBe(expected)
    expect(recorder.entries()).toHaveLength(allowNonRoot ? 1 : 0)
  })
})

function thresholds(...values: [number, number, number, number]): xdr.Thresholds {
  return new xdr.Thresholds(Uint8Array.from(values))
}

function signerWithWeight(signer: Keypair, weight: number): xdr.Signer {
  return new xdr.Signer({ key: xdr.SignerKey.signerKeyTypeEd25519(signer.rawPublicKey()), weight })
}
