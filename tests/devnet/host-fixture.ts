import { createHash } from 'node:crypto'
import { Address, Asset, Keypair, nativeToScVal, StrKey, xdr } from '@stellar/stellar-sdk'
import { accountKey, trustlineKey } from '#lib/devnet/host/entry-key.ts'
import { type GenesisContracts, genesisContracts } from '#lib/devnet/host/genesis.ts'
import {
  type AuthMode,
  type Invocation,
  type InvocationResult,
  invokeHostFunction,
} from '#lib/devnet/host/invocation.ts'
import { openProofs } from '#lib/devnet/host/proofs.ts'
import { makeAccount } from '#lib/devnet/state/account.ts'
import type { LedgerContext } from '#lib/devnet/state/ledger-context.ts'
import { openState, type State } from '#lib/devnet/state/state.ts'
import { encodePoint, G, H, multiply } from '#lib/wallet/grumpkin.ts'

export const passphrase = 'Standalone Network ; February 2017'
/** The ledger accepts stand-in proofs. */
const proofs = await openProofs('stand-in')
/** A different key for each circuit. */
export const verificationKeys = {
  register: new Uint8Array(1_760).fill(1),
  transfer: new Uint8Array(1_760).fill(2),
  withdraw: new Uint8Array(1_760).fill(3),
  set_spender: new Uint8Array(1_760).fill(4),
  spender_transfer: new Uint8Array(1_760).fill(5),
}
export const ledger: LedgerContext = {
  sequence: 1_000,
  closeTime: 1_760_000_000,
  networkId: createHash('sha256').update(passphrase).digest(),
  passphrase,
  protocol: 28,
  verify: proofs.verify,
}

/** The same key for the same name, in every run. */
export const keypair = (name: string): Keypair => Keypair.fromRawEd25519Seed(createHash('sha256').update(name).digest())

export const issuer = keypair('issuer')
export const employer = keypair('employer')
export const contractor = keypair('contractor')
export const stranger = keypair('stranger')
export const asset = new Asset('USDC', issuer.publicKey())
export const auditorKey = encodePoint(multiply(H, 77n))

export interface Network {
  readonly state: State
  readonly contracts: GenesisContracts
}

/** A ledger with the genesis contracts and funded accounts; employer and contractor trust the test USDC. */
export function openNetwork({ delegations = true } = {}): Network {
  const { register, transfer, withdraw } = verificationKeys
  const { entries, contracts } = genesisContracts({
    passphrase,
    asset,
    auditorKey,
    verificationKeys: delegations ? verificationKeys : { register, transfer, withdraw },
    ledger: { ...ledger, sequence: 1 },
  })
  const state = openState(entries)
  for (const holder of [issuer, employer, contractor, stranger]) putAccount(state, holder.publicKey())
  for (const holder of [employer, contractor]) putTrustline(state, holder.publicKey(), 1_000_0000000n)
  return { state, contracts }
}

export function putAccount(state: State, id: string, fields: Partial<xdr.AccountEntry> = {}): void {
  const account = new xdr.AccountEntry({ ...makeAccount(id, 100_0000000n, 1), ...fields })
  state.put({ key: accountKey(id).id, data: xdr.LedgerEntryData.account(account), lastModified: 1 })
}

export function putTrustline(state: State, id: string, balance: bigint, fields: Partial<xdr.TrustLineEntry> = {}) {
  const line = new xdr.TrustLineEntry({
    accountId: xdr.PublicKey.publicKeyTypeEd25519(StrKey.decodeEd25519PublicKey(id)),
    asset: asset.toTrustLineXdrObject(),
    balance,
    limit: 2n ** 63n - 1n,
    flags: 1,
    ext: xdr.TrustLineEntryExt.v0(),
    ...fields,
  })
  state.put({ key: trustlineKey(id, asset).id, data: xdr.LedgerEntryData.trustline(line), lastModified: 1 })
}

export interface Request {
  readonly source: Keypair
  readonly contract: string
  readonly name: string
  readonly args: xdr.ScVal[]
}

export function callOf({ contract, name, args }: Omit<Request, 'source'>): xdr.InvokeContractArgs {
  return new xdr.InvokeContractArgs({
    contractAddress: new Address(contract).toScAddress(),
    functionName: name,
    args,
  })
}

export const hostFunctionOf = (request: Request): xdr.HostFunction =>
  xdr.HostFunction.hostFunctionTypeInvokeContract(callOf(request))

export const recording: AuthMode = { kind: 'record', allowNonRoot: false, upgraded: true }

/** Records the call in a separate layer and drops it. */
export function record({ state }: Network, request: Request, mode: AuthMode = recording): InvocationResult {
  const { source } = request
  const hostFunction = hostFunctionOf(request)
  const layer = state.fork()
  return invokeHostFunction({
    state: layer,
    ledger,
    source: source.publicKey(),
    hostFunction,
    auth: [],
    mode,
    footprint: 'record',
  })
}

/** Enforces with the given fields only; commits on success. */
export function enforce(network: Network, request: Request, fields: Partial<Invocation> = {}): InvocationResult {
  const layer = network.state.fork()
  const result = invokeHostFunction({
    state: layer,
    ledger,
    source: request.source.publicKey(),
    hostFunction: hostFunctionOf(request),
    auth: [],
    mode: { kind: 'enforce' },
    footprint: 'record',
    ...fields,
  })
  if (result.ok) layer.commit()
  return result
}

/** Records, then enforces the recorded auth and footprint, like a client. */
export function apply(network: Network, request: Request): Extract<InvocationResult, { ok: true }> {
  const recorded = record(network, request)
  if (!recorded.ok) throw new Error(recorded.error)
  const result = enforce(network, request, { auth: recorded.auth, footprint: recorded.footprint })
  if (!result.ok) throw new Error(result.error)
  return result
}

/** The host's first line for a call that fails, `Error(Contract, #3506)` for instance; '' for one that succeeds. */
export function failure(network: Network, request: Request): string {
  return label(record(network, request))
}

export function label(result: InvocationResult): string {
  return result.ok ? '' : (result.error.split('\n')[0] ?? '').replace('HostError: ', '')
}

export const g = (key: Keypair): xdr.ScVal => new Address(key.publicKey()).toScVal()
export const c = (contract: string): xdr.ScVal => new Address(contract).toScVal()
export const amount = (value: bigint): xdr.ScVal => nativeToScVal(value, { type: 'i128' })
export const number = (value: number): xdr.ScVal => xdr.ScVal.scvU32(value)
export const point = (scalar: bigint): Uint8Array => encodePoint(multiply(G, scalar))

/** A small integer as 32 bytes. */
export function field(value: number): Uint8Array {
  const bytes = new Uint8Array(32)
  bytes[31] = value
  return bytes
}
