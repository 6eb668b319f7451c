import { createHash } from 'node:crypto'
import { Address, hash, Keypair, StrKey, xdr } from '@stellar/stellar-sdk'
import type { SponsorRules } from '#lib/transfers/policy.ts'

/** A test key pair, the same in every run. */
export const pair = (name: string) => Keypair.fromRawEd25519Seed(createHash('sha256').update(name).digest())

export const PASSPHRASE = 'Standalone Network ; February 2017'
/** unix seconds */
export const NOW = 1_777_636_800
export const [payer, payee, sponsor, faucet, channel, stranger] = [
  pair('payer'),
  pair('payee'),
  pair('sponsor'),
  pair('faucet'),
  pair('channel'),
  pair('stranger'),
]
export const contractAddress = (name: string) => StrKey.encodeContract(createHash('sha256').update(name).digest())
export const TOKEN = contractAddress('confidential token')

export const rules: SponsorRules = {
  token: TOKEN,
  contracts: new Set([TOKEN]),
  functions: new Set(['confidential_transfer']),
  maxFee: 5_000_000n,
  controlled: new Set([sponsor, faucet, channel].map((key) => key.publicKey())),
}

type Fields<Class extends abstract new (input: never) => unknown> = ConstructorParameters<Class>[0]

/** A change to a valid transfer, by XDR structure. */
export interface Change {
  tx?: Partial<Fields<typeof xdr.Transaction>>
  operation?: Partial<Fields<typeof xdr.Operation>>
  hostFunction?: xdr.HostFunction
  call?: Partial<Fields<typeof xdr.InvokeContractArgs>>
  /** by default one entry: source-account credentials whose root is the call */
  auth?: xdr.SorobanAuthorizationEntry[]
  sorobanData?: Partial<Fields<typeof xdr.SorobanTransactionData>>
  resources?: Partial<Fields<typeof xdr.SorobanResources>>
}

export const scAddress = (strkey: string) => new Address(strkey).toScVal()
/** The length of a real payload with its proof. */
export const data = xdr.ScVal.scvBytes(new Uint8Array(15_420).fill(7))

/** The call of a valid transfer. */
export function transferCall(change: Change['call'] = {}): xdr.InvokeContractArgs {
  return new xdr.InvokeContractArgs({
    contractAddress: new Address(TOKEN).toScAddress(),
    functionName: 'confidential_transfer',
    args: [scAddress(payer.publicKey()), scAddress(payee.publicKey()), data],
    ...change,
  })
}

/** An authorization of `call` only. */
export function authorize(
  call: xdr.InvokeContractArgs,
  credentials: xdr.SorobanCredentials = xdr.SorobanCredentials.sorobanCredentialsSourceAccount(),
  subInvocations: xdr.SorobanAuthorizedInvocation[] = [],
): xdr.SorobanAuthorizationEntry {
  const root = xdr.SorobanAuthorizedFunction.sorobanAuthorizedFunctionTypeContractFn(call)
  return new xdr.SorobanAuthorizationEntry({
    credentials,
    rootInvocation: new xdr.SorobanAuthorizedInvocation({ function: root, subInvocations }),
  })
}

export const timeBounds = (minTime: number | bigint, maxTime: number | bigint) =>
  xdr.Preconditions.precondTime(new xdr.TimeBounds({ minTime: BigInt(minTime), maxTime: BigInt(maxTime) }))

/** A confidential transfer that is valid at NOW, except for `change`. */
export function transferTransaction(change: Change = {}): xdr.Transaction {
  const call = transferCall(change.call)
  const invocation = new xdr.InvokeHostFunctionOp({
    hostFunction: change.hostFunction ?? xdr.HostFunction.hostFunctionTypeInvokeContract(call),
    auth: change.auth ?? [authorize(call)],
  })
  const operation = new xdr.Operation({
    sourceAccount: null,
    body: xdr.OperationBody.invokeHostFunction(invocation),
    ...change.operation,
  })
  const resources = new xdr.SorobanResources({
    footprint: new xdr.LedgerFootprint({ readOnly: [], readWrite: [] }),
    instructions: 40_000_000,
    diskReadBytes: 1_200,
    writeBytes: 2_400,
    ...change.resources,
  })
  const sorobanData = new xdr.SorobanTransactionData({
    ext: xdr.SorobanTransactionDataExt.v0(),
    resources,
    resourceFee: 90_460n,
    ...change.sorobanData,
  })
  return new xdr.Transaction({
    sourceAccount: xdr.MuxedAccount.keyTypeEd25519(payer.rawPublicKey()),
    fee: 90_560,
    seqNum: 4_294_967_297n,
    cond: timeBounds(0, NOW + 120),
    memo: xdr.Memo.memoNone(),
    operations: [operation],
    ext: xdr.TransactionExt.sorobanData(sorobanData),
    ...change.tx,
  })
}

/** The transaction's hash on the network of `passphrase`, computed by the SDK. */
export function transactionHash(tx: xdr.Transaction, passphrase = PASSPHRASE): Uint8Array {
  const taggedTransaction = xdr.TransactionSignaturePayloadTaggedTransaction.envelopeTypeTx(tx)
  return hash(new xdr.TransactionSignaturePayload({ networkId: hash(passphrase), taggedTransaction }).toXdr())
}

/** `tx` signed by each of `signers`, as base64 XDR. */
export function signTransaction(tx: xdr.Transaction, signers: Keypair[] = [payer], passphrase = PASSPHRASE): string {
  const digest = transactionHash(tx, passphrase)
  return envelopeOf(
    tx,
    signers.map((signer) => signer.signDecorated(digest)),
  )
}

export function envelopeOf(tx: xdr.Transaction, signatures: xdr.DecoratedSignature[]): string {
  return xdr.TransactionEnvelope.envelopeTypeTx(new xdr.TransactionV1Envelope({ tx, signatures })).toXdr('base64')
}

/** A signed transfer, as a wallet would post it. */
export function signedTransfer(change: Change = {}, signers: Keypair[] = [payer]): string {
  return signTransaction(transferTransaction(change), signers)
}
