import { Address, Operation, xdr } from '@stellar/stellar-sdk'
import type { RefusalReason } from '#lib/refusal/sponsor-refusal.ts'
import type { SponsorRules } from '#lib/transfers/policy.ts'
import {
  authorize,
  type Change,
  channel,
  contractAddress,
  data,
  faucet,
  NOW,
  payee,
  payer,
  rules,
  scAddress,
  sponsor,
  stranger,
  timeBounds,
  transferCall,
  transferTransaction,
} from '../support/inner-transaction.ts'

/** A valid transfer that is changed in one thing, and the reason of its refusal if it is refused. */
interface PolicyCase {
  name: string
  change: Change
  reason?: RefusalReason
  rules?: Partial<SponsorRules>
}

const ed25519 = (key: typeof payer) => xdr.MuxedAccount.keyTypeEd25519(key.rawPublicKey())
const muxed = (key: typeof payer) =>
  xdr.MuxedAccount.keyTypeMuxedEd25519(new xdr.MuxedEd25519Account({ id: 7n, ed25519: key.rawPublicKey() }))
const to = scAddress(payee.publicKey())
const from = scAddress(payer.publicKey())
const [operation] = transferTransaction().operations
if (!operation) throw new Error('the valid transfer has one operation')
const classic = Operation.bumpSequence({ bumpTo: '1' })

const shape: PolicyCase[] = [
  { name: 'nothing at all', change: {} },
  { name: 'no operation', change: { tx: { operations: [] } }, reason: 'operation-count' },
  { name: 'two operations', change: { tx: { operations: [operation, operation] } }, reason: 'operation-count' },
  {
    name: 'a second, classic operation',
    change: { tx: { operations: [operation, classic] } },
    reason: 'operation-count',
  },
  { name: 'a classic operation', change: { tx: { operations: [classic] } }, reason: 'operation-type' },
  {
    name: 'an extension of time to live',
    change: { tx: { operations: [Operation.extendFootprintTtl({ extendTo: 9 })] } },
    reason: 'operation-type',
  },
  {
    name: 'an upload of code',
    change: { hostFunction: xdr.HostFunction.hostFunctionTypeUploadContractWasm(new Uint8Array(9)), auth: [] },
    reason: 'operation-type',
  },
  {
    name: 'the creation of a contract',
    change: { hostFunction: xdr.HostFunction.hostFunctionTypeCreateContract(createContractArgs()), auth: [] },
    reason: 'operation-type',
  },
  {
    name: 'the creation of a contract with a constructor',
    change: {
      hostFunction: xdr.HostFunction.hostFunctionTypeCreateContractV2(
        new xdr.CreateContractArgsV2({ ...createContractArgs(), constructorArgs: [] }),
      ),
      auth: [],
    },
    reason: 'operation-type',
  },
  { name: 'the source named again in the operation', change: { operation: { sourceAccount: ed25519(payer) } } },
  ...[sponsor, faucet, channel, stranger].map((key, index) => ({
    name: `another operation source (${index})`,
    change: { operation: { sourceAccount: ed25519(key) } },
    reason: 'operation-source' as const,
  })),
  {
    name: 'a muxed operation source',
    change: { operation: { sourceAccount: muxed(payer) } },
    reason: 'operation-source',
  },
  {
    name: 'the sponsor, muxed, as operation source',
    change: { operation: { sourceAccount: muxed(sponsor) } },
    reason: 'operation-source',
  },
  { name: 'a muxed source', change: { tx: { sourceAccount: muxed(payer) } }, reason: 'muxed-source' },
  ...[
    xdr.Memo.memoText('salary'),
    xdr.Memo.memoText(''),
    xdr.Memo.memoId(0n),
    xdr.Memo.memoHash(new Uint8Array(32)),
    xdr.Memo.memoReturn(new Uint8Array(32)),
  ].map((memo, index) => ({ name: `${memo.type} (${index})`, change: { tx: { memo } }, reason: 'memo' as const })),
]

function createContractArgs(): xdr.CreateContractArgs {
  return new xdr.CreateContractArgs({
    contractIdPreimage: xdr.ContractIdPreimage.contractIdPreimageFromAddress(
      new xdr.ContractIdPreimageFromAddress({
        address: new Address(payer.publicKey()).toScAddress(),
        salt: new Uint8Array(32),
      }),
    ),
    executable: xdr.ContractExecutable.contractExecutableStellarAsset(),
  })
}

const INT64 = { least: -(2n ** 63n), most: 2n ** 63n - 1n }
const UINT64_MOST = 2n ** 64n - 1n

const bounds = (minTime: number | bigint, maxTime: number | bigint): Change => ({
  tx: { cond: timeBounds(minTime, maxTime) },
})

function preconditions(change: Partial<ConstructorParameters<typeof xdr.PreconditionsV2>[0]>): Change {
  const v2 = new xdr.PreconditionsV2({
    timeBounds: new xdr.TimeBounds({ minTime: 0n, maxTime: BigInt(NOW + 120) }),
    ledgerBounds: null,
    minSeqNum: null,
    minSeqAge: 0n,
    minSeqLedgerGap: 0,
    extraSigners: [],
    ...change,
  })
  return { tx: { cond: xdr.Preconditions.precondV2(v2) } }
}

const time: PolicyCase[] = [
  { name: 'no precondition at all', change: { tx: { cond: xdr.Preconditions.precondNone() } }, reason: 'no-expiry' },
  { name: 'maxTime 0', change: bounds(0, 0), reason: 'no-expiry' },
  { name: 'maxTime 0 and minTime in the future', change: bounds(NOW + 1, 0), reason: 'no-expiry' },
  { name: 'maxTime long ago', change: bounds(0, 1), reason: 'expires-too-soon' },
  { name: 'maxTime now', change: bounds(0, NOW), reason: 'expires-too-soon' },
  { name: 'maxTime in 9 s', change: bounds(0, NOW + 9), reason: 'expires-too-soon' },
  { name: 'maxTime in 10 s', change: bounds(0, NOW + 10) },
  { name: 'maxTime in 330 s', change: bounds(0, NOW + 330) },
  { name: 'maxTime in 331 s', change: bounds(0, NOW + 331), reason: 'expires-too-late' },
  { name: 'the last maxTime of all', change: bounds(0, UINT64_MOST), reason: 'expires-too-late' },
  {
    name: 'a maxTime that is in time when cut to 32 bits',
    change: bounds(0, 2n ** 32n + BigInt(NOW + 120)),
    reason: 'expires-too-late',
  },
  { name: 'minTime now', change: bounds(NOW, NOW + 120) },
  { name: 'minTime in 1 s', change: bounds(NOW + 1, NOW + 120), reason: 'not-yet-valid' },
  { name: 'the last minTime of all', change: bounds(UINT64_MOST, NOW + 120), reason: 'not-yet-valid' },
  { name: 'the same time bounds among preconditions', change: preconditions({}) },
  { name: 'preconditions without time bounds', change: preconditions({ timeBounds: null }), reason: 'no-expiry' },
  {
    name: 'preconditions with maxTime 0',
    change: preconditions({ timeBounds: new xdr.TimeBounds({ minTime: 0n, maxTime: 0n }) }),
    reason: 'no-expiry',
  },
  ...preconditionCases(),
]

function preconditionCases(): PolicyCase[] {
  const extraSigners = [xdr.SignerKey.signerKeyTypeEd25519(sponsor.rawPublicKey())]
  const changes = {
    'an extra signer': { extraSigners },
    'an extra signer by hash': { extraSigners: [xdr.SignerKey.signerKeyTypeHashX(new Uint8Array(32))] },
    'ledger bounds': { ledgerBounds: new xdr.LedgerBounds({ minLedger: 0, maxLedger: 1_000_000 }) },
    'ledger bounds of 0': { ledgerBounds: new xdr.LedgerBounds({ minLedger: 0, maxLedger: 0 }) },
    minSeqNum: { minSeqNum: 1n },
    'minSeqNum 0': { minSeqNum: 0n },
    minSeqAge: { minSeqAge: 1n },
    minSeqLedgerGap: { minSeqLedgerGap: 1 },
  }
  return Object.entries(changes).map(([name, change]) => ({
    name,
    change: preconditions(change),
    reason: 'preconditions',
  }))
}

const muxedAddress = xdr.ScVal.scvAddress(
  xdr.ScAddress.scAddressTypeMuxedAccount(new xdr.MuxedEd25519Account({ id: 7n, ed25519: payer.rawPublicKey() })),
)
const claimableBalance = xdr.ScVal.scvAddress(
  xdr.ScAddress.scAddressTypeClaimableBalance(
    xdr.ClaimableBalanceId.claimableBalanceIdTypeV0(new xdr.Hash(new Uint8Array(32))),
  ),
)
const liquidityPool = xdr.ScVal.scvAddress(xdr.ScAddress.scAddressTypeLiquidityPool(new xdr.PoolId(new Uint8Array(32))))
const otherToken = contractAddress('another token')
const call = (change: Change['call']): Change => ({ call: change })

const calls: PolicyCase[] = [
  {
    name: 'another contract',
    change: call({ contractAddress: new Address(otherToken).toScAddress() }),
    reason: 'contract',
  },
  {
    name: 'an account for a contract',
    change: call({ contractAddress: new Address(payer.publicKey()).toScAddress() }),
    reason: 'contract',
  },
  ...[muxedAddress, claimableBalance, liquidityPool].map((value) => ({
    name: `${value.address.type} for a contract`,
    change: call({ contractAddress: value.address }),
    reason: 'contract' as const,
  })),
  { name: 'no contract is on the list', change: {}, rules: { contracts: new Set() }, reason: 'contract' },
  ...['withdraw', 'confidential_transfe', 'confidential_transfer_', 'Confidential_Transfer', ''].map(
    (functionName) => ({
      name: `function "${functionName}"`,
      change: call({ functionName }),
      reason: 'function' as const,
    }),
  ),
  { name: 'no function is on the list', change: {}, rules: { functions: new Set() }, reason: 'function' },
  { name: 'no arguments', change: call({ args: [] }), reason: 'arguments' },
  { name: 'two arguments', change: call({ args: [from, to] }), reason: 'arguments' },
  { name: 'four arguments', change: call({ args: [from, to, data, data] }), reason: 'arguments' },
  { name: 'from a stranger', change: call({ args: [scAddress(stranger.publicKey()), to, data] }), reason: 'not-payer' },
  { name: 'from the sponsor', change: call({ args: [scAddress(sponsor.publicKey()), to, data] }), reason: 'not-payer' },
  { name: 'from a contract', change: call({ args: [scAddress(otherToken), to, data] }), reason: 'not-payer' },
  {
    name: 'from a string',
    change: call({ args: [xdr.ScVal.scvString(payer.publicKey()), to, data] }),
    reason: 'arguments',
  },
  ...[muxedAddress, claimableBalance, liquidityPool].flatMap((value) => [
    { name: `from ${value.address.type}`, change: call({ args: [value, to, data] }), reason: 'arguments' as const },
    { name: `to ${value.address.type}`, change: call({ args: [from, value, data] }), reason: 'arguments' as const },
  ]),
  { name: 'to nobody', change: call({ args: [from, xdr.ScVal.scvVoid(), data] }), reason: 'arguments' },
  { name: 'to a contract', change: call({ args: [from, scAddress(otherToken), data] }) },
  { name: 'to oneself', change: call({ args: [from, from, data] }) },
  ...[xdr.ScVal.scvString('data'), xdr.ScVal.scvVoid(), xdr.ScVal.scvVec([data]), to].map((value) => ({
    name: `data as ${value.type}`,
    change: call({ args: [from, to, value] }),
    reason: 'arguments' as const,
  })),
  { name: 'no bytes in the data', change: call({ args: [from, to, xdr.ScVal.scvBytes(new Uint8Array(0))] }) },
]

const ours = transferCall()
const credentials = (key: typeof payer) =>
  new xdr.SorobanAddressCredentials({
    address: new Address(key.publicKey()).toScAddress(),
    nonce: 1n,
    signatureExpirationLedger: 1_000,
    signature: xdr.ScVal.scvVoid(),
  })
const delegates = (key: typeof payer, delegate: typeof payer) =>
  new xdr.SorobanAddressCredentialsWithDelegates({
    addressCredentials: credentials(key),
    delegates: [
      new xdr.SorobanDelegateSignature({
        address: new Address(delegate.publicKey()).toScAddress(),
        signature: xdr.ScVal.scvVoid(),
        nestedDelegates: [],
      }),
    ],
  })
const invocation = new xdr.SorobanAuthorizedInvocation({
  function: xdr.SorobanAuthorizedFunction.sorobanAuthorizedFunctionTypeContractFn(ours),
  subInvocations: [],
})
const created = xdr.SorobanAuthorizedFunction.sorobanAuthorizedFunctionTypeCreateContractHostFn(createContractArgs())
const createdV2 = xdr.SorobanAuthorizedFunction.sorobanAuthorizedFunctionTypeCreateContractV2HostFn(
  new xdr.CreateContractArgsV2({ ...createContractArgs(), constructorArgs: [] }),
)

const authorization: PolicyCase[] = [
  { name: 'no authorization', change: { auth: [] } },
  { name: 'two authorizations', change: { auth: [authorize(ours), authorize(ours)] }, reason: 'auth-count' },
  {
    name: 'a second authorization, by the sponsor',
    change: {
      auth: [authorize(ours), authorize(ours, xdr.SorobanCredentials.sorobanCredentialsAddress(credentials(sponsor)))],
    },
    reason: 'auth-count',
  },
  ...Object.entries({ payer, sponsor, faucet, channel, stranger }).flatMap(([name, key]) =>
    [
      xdr.SorobanCredentials.sorobanCredentialsAddress(credentials(key)),
      xdr.SorobanCredentials.sorobanCredentialsAddressV2(credentials(key)),
      xdr.SorobanCredentials.sorobanCredentialsAddressWithDelegates(delegates(key, stranger)),
      xdr.SorobanCredentials.sorobanCredentialsAddressWithDelegates(delegates(payer, key)),
    ].map((used, index) => ({
      name: `${used.type} of the ${name} (${index})`,
      change: { auth: [authorize(ours, used)] },
      reason: 'auth-credentials' as const,
    })),
  ),
  ...[
    transferCall({ contractAddress: new Address(otherToken).toScAddress() }),
    transferCall({ functionName: 'withdraw' }),
    transferCall({ args: [from, to] }),
    transferCall({ args: [from, scAddress(stranger.publicKey()), data] }),
    transferCall({ args: [from, to, xdr.ScVal.scvBytes(new Uint8Array(15_420).fill(8))] }),
  ].map((root, index) => ({
    name: `the authorization of another call (${index})`,
    change: { auth: [authorize(root)] },
    reason: 'auth-invocation' as const,
  })),
  {
    name: 'a call below the call',
    change: { auth: [authorize(ours, undefined, [invocation])] },
    reason: 'auth-invocation',
  },
  ...[created, createdV2].map((root) => ({
    name: `${root.type} for a root`,
    change: {
      auth: [
        new xdr.SorobanAuthorizationEntry({
          credentials: xdr.SorobanCredentials.sorobanCredentialsSourceAccount(),
          rootInvocation: new xdr.SorobanAuthorizedInvocation({ function: root, subInvocations: [] }),
        }),
      ],
    },
    reason: 'auth-invocation' as const,
  })),
]

const addresses: PolicyCase[] = [
  ...[sponsor, faucet, channel].map((key, index) => ({
    name: `an address of the service pays (${index})`,
    change: {
      tx: { sourceAccount: ed25519(key) },
      call: { args: [scAddress(key.publicKey()), to, data] },
    },
    reason: 'own-address' as const,
  })),
  {
    name: 'an address of the service is called',
    change: {},
    rules: { controlled: new Set([...rules.contracts]) },
    reason: 'own-address',
  },
  ...[sponsor, faucet, channel].map((key, index) => ({
    name: `an address of the service is paid (${index})`,
    change: call({ args: [from, scAddress(key.publicKey()), data] }),
  })),
  {
    name: 'a channel pays, and is no address of the service for this caller',
    change: { tx: { sourceAccount: ed25519(channel) }, call: { args: [scAddress(channel.publicKey()), to, data] } },
    rules: { controlled: new Set([sponsor.publicKey(), faucet.publicKey()]) },
  },
]

const fees = (fee: number, resourceFee: bigint): Change => ({ tx: { fee }, sorobanData: { resourceFee } })
const money: PolicyCase[] = [
  { name: 'no resources', change: { tx: { ext: xdr.TransactionExt.v0() } }, reason: 'no-resources' },
  { name: 'a fee that covers its resources exactly', change: fees(90_560, 90_460n) },
  { name: 'one stroop short of the inclusion fee', change: fees(90_559, 90_460n), reason: 'fee-below-resources' },
  { name: 'a resource fee above the fee (CAP-66)', change: fees(100, 90_460n), reason: 'fee-below-resources' },
  { name: 'no fee', change: fees(0, 0n), reason: 'fee-below-resources' },
  { name: 'the least fee', change: fees(100, 0n) },
  { name: 'a resource fee at the cap', change: fees(100, 5_000_000n), reason: 'fee-below-resources' },
  { name: 'a resource fee above the cap, the fee below', change: fees(100, 5_000_001n), reason: 'resource-fee-cap' },
  { name: 'both above the cap', change: fees(6_000_000, 5_000_001n), reason: 'resource-fee-cap' },
  { name: 'an outer fee at the cap', change: fees(2_500_000, 90_460n) },
  { name: 'an outer fee above the cap', change: fees(2_500_001, 90_460n), reason: 'fee-cap' },
  { name: 'the largest fee', change: fees(2 ** 32 - 1, 90_460n), reason: 'fee-cap' },
  {
    name: 'a fee that is small when cut to 32 bits once doubled',
    change: fees(2 ** 31 + 50_000, 90_460n),
    reason: 'fee-cap',
  },
  { name: 'a resource fee of -1', change: fees(90_560, -1n), reason: 'fee-below-resources' },
  { name: 'the least resource fee of all', change: fees(90_560, INT64.least), reason: 'fee-below-resources' },
  { name: 'the largest resource fee of all', change: fees(90_560, INT64.most), reason: 'resource-fee-cap' },
  { name: 'the least sequence number of all', change: { tx: { seqNum: INT64.least } } },
  { name: 'another cap', change: {}, rules: { maxFee: 181_119n }, reason: 'fee-cap' },
  { name: 'another cap, reached', change: {}, rules: { maxFee: 181_120n } },
]

export const POLICY_CASES: readonly PolicyCase[] = [
  ...shape,
  ...time,
  ...calls,
  ...authorization,
  ...addresses,
  ...money,
]
