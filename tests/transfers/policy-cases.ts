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

/** A valid transfer that is changed in one thing, or the rules for it; without a reason it is accepted. */
interface PolicyCase {
  name: string
  change: Change
  reason?: RefusalReason
  rules?: Partial<SponsorRules>
}

type Row = [name: string, change: Change, rules?: Partial<SponsorRules>]
const named = ([name, change, given = {}]: Row): PolicyCase => ({ name, change, rules: given })
const accept = (...rows: Row[]): PolicyCase[] => rows.map(named)
const refuse = (reason: RefusalReason, ...rows: Row[]): PolicyCase[] => rows.map((row) => ({ ...named(row), reason }))

const ed25519 = (key: typeof payer) => xdr.MuxedAccount.keyTypeEd25519(key.rawPublicKey())
const muxed = (key: typeof payer) =>
  xdr.MuxedAccount.keyTypeMuxedEd25519(new xdr.MuxedEd25519Account({ id: 7n, ed25519: key.rawPublicKey() }))
const to = scAddress(payee.publicKey())
const from = scAddress(payer.publicKey())
const [operation] = transferTransaction().operations
if (!operation) throw new Error('the valid transfer has one operation')
const classic = Operation.bumpSequence({ bumpTo: '1' })
const operations = (...given: xdr.Operation[]): Change => ({ tx: { operations: given } })
const sourceOf = (sourceAccount: xdr.MuxedAccount): Change => ({ operation: { sourceAccount } })
const hostFunction = (given: xdr.HostFunction): Change => ({ hostFunction: given, auth: [] })

const contractIdPreimage = xdr.ContractIdPreimage.contractIdPreimageFromAddress(
  new xdr.ContractIdPreimageFromAddress({
    address: new Address(payer.publicKey()).toScAddress(),
    salt: new Uint8Array(32),
  }),
)
const creation = { contractIdPreimage, executable: xdr.ContractExecutable.contractExecutableStellarAsset() }
const createContract = new xdr.CreateContractArgs(creation)
const createContractV2 = new xdr.CreateContractArgsV2({ ...creation, constructorArgs: [] })
const { hostFunctionTypeUploadContractWasm, hostFunctionTypeCreateContract, hostFunctionTypeCreateContractV2 } =
  xdr.HostFunction

const shape: PolicyCase[] = [
  ...accept(['nothing at all', {}], ['the source named again in the operation', sourceOf(ed25519(payer))]),
  ...refuse(
    'operation-count',
    ['no operation', operations()],
    ['two operations', operations(operation, operation)],
    ['a second, classic operation', operations(operation, classic)],
  ),
  ...refuse(
    'operation-type',
    ['a classic operation', operations(classic)],
    ['an extension of time to live', operations(Operation.extendFootprintTtl({ extendTo: 9 }))],
    ['an upload of code', hostFunction(hostFunctionTypeUploadContractWasm(new Uint8Array(9)))],
    ['the creation of a contract', hostFunction(hostFunctionTypeCreateContract(createContract))],
    ['the creation of one with a constructor', hostFunction(hostFunctionTypeCreateContractV2(createContractV2))],
  ),
  ...refuse(
    'operation-source',
    ...[sponsor, faucet, channel, stranger].map((key, index): Row => {
      return [`another operation source (${index})`, sourceOf(ed25519(key))]
    }),
    ['a muxed operation source', sourceOf(muxed(payer))],
    ['the sponsor, muxed, as operation source', sourceOf(muxed(sponsor))],
  ),
  ...refuse('muxed-source', ['a muxed source', { tx: { sourceAccount: muxed(payer) } }]),
  ...refuse(
    'memo',
    ...[
      xdr.Memo.memoText('salary'),
      xdr.Memo.memoText(''),
      xdr.Memo.memoId(0n),
      xdr.Memo.memoHash(new Uint8Array(32)),
      xdr.Memo.memoReturn(new Uint8Array(32)),
    ].map((memo, index): Row => [`${memo.type} (${index})`, { tx: { memo } }]),
  ),
]

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
const { signerKeyTypeEd25519, signerKeyTypeHashX } = xdr.SignerKey
const ledgerBounds = (minLedger: number, maxLedger: number) =>
  preconditions({ ledgerBounds: new xdr.LedgerBounds({ minLedger, maxLedger }) })
const noTime = new xdr.TimeBounds({ minTime: 0n, maxTime: 0n })

const time: PolicyCase[] = [
  ...refuse(
    'no-expiry',
    ['no precondition at all', { tx: { cond: xdr.Preconditions.precondNone() } }],
    ['maxTime 0', bounds(0, 0)],
    ['maxTime 0 and minTime in the future', bounds(NOW + 1, 0)],
    ['preconditions without time bounds', preconditions({ timeBounds: null })],
    ['preconditions with maxTime 0', preconditions({ timeBounds: noTime })],
  ),
  ...refuse(
    'expires-too-soon',
    ['maxTime long ago', bounds(0, 1)],
    ['maxTime now', bounds(0, NOW)],
    ['maxTime in 9 s', bounds(0, NOW + 9)],
  ),
  ...accept(
    ['maxTime in 10 s', bounds(0, NOW + 10)],
    ['maxTime in 330 s', bounds(0, NOW + 330)],
    ['minTime now', bounds(NOW, NOW + 120)],
    ['the same time bounds among preconditions', preconditions({})],
  ),
  ...refuse(
    'expires-too-late',
    ['maxTime in 331 s', bounds(0, NOW + 331)],
    ['the last maxTime of all', bounds(0, UINT64_MOST)],
    ['a maxTime that is in time when cut to 32 bits', bounds(0, 2n ** 32n + BigInt(NOW + 120))],
  ),
  ...refuse(
    'not-yet-valid',
    ['minTime in 1 s', bounds(NOW + 1, NOW + 120)],
    ['the last minTime of all', bounds(UINT64_MOST, NOW + 120)],
  ),
  ...refuse(
    'preconditions',
    ['an extra signer', preconditions({ extraSigners: [signerKeyTypeEd25519(sponsor.rawPublicKey())] })],
    ['an extra signer by hash', preconditions({ extraSigners: [signerKeyTypeHashX(new Uint8Array(32))] })],
    ['ledger bounds', ledgerBounds(0, 1_000_000)],
    ['ledger bounds of 0', ledgerBounds(0, 0)],
    ['minSeqNum', preconditions({ minSeqNum: 1n })],
    ['minSeqNum 0', preconditions({ minSeqNum: 0n })],
    ['minSeqAge', preconditions({ minSeqAge: 1n })],
    ['minSeqLedgerGap', preconditions({ minSeqLedgerGap: 1 })],
  ),
]

const muxedAddress = xdr.ScVal.scvAddress(
  xdr.ScAddress.scAddressTypeMuxedAccount(new xdr.MuxedEd25519Account({ id: 7n, ed25519: payer.rawPublicKey() })),
)
const claimableBalance = xdr.ScVal.scvAddress(
  xdr.ScAddress.scAddressTypeClaimableBalance(
    xdr.ClaimableBalanceId.claimableBalanceIdTypeV0(new xdr.Hash(new Uint8Array(32))),
  ),
)
const liquidityPool = xdr.ScVal.scvAddress(xdr.ScAddress.scAddressTypeLiquidityPool(new xdr.PoolId(new Uint8Array(32))))
const foreign = [muxedAddress, claimableBalance, liquidityPool]
const otherToken = contractAddress('another token')
const call = (change: Change['call']): Change => ({ call: change })
const args = (...given: xdr.ScVal[]): Change => call({ args: given })
const contract = (address: string): Change => call({ contractAddress: new Address(address).toScAddress() })
const misnamed = ['withdraw', 'confidential_transfe', 'confidential_transfer_', 'Confidential_Transfer', '']

const calls: PolicyCase[] = [
  ...refuse(
    'contract',
    ['another contract', contract(otherToken)],
    ['an account for a contract', contract(payer.publicKey())],
    ...foreign.map(({ address }): Row => [`${address.type} for a contract`, call({ contractAddress: address })]),
    ['no contract is on the list', {}, { contracts: new Set() }],
  ),
  ...refuse(
    'function',
    ...misnamed.map((functionName): Row => [`function "${functionName}"`, call({ functionName })]),
    ['no function is on the list', {}, { functions: new Set() }],
  ),
  ...refuse(
    'arguments',
    ['no arguments', args()],
    ['two arguments', args(from, to)],
    ['four arguments', args(from, to, data, data)],
    ['from a string', args(xdr.ScVal.scvString(payer.publicKey()), to, data)],
    ...foreign.flatMap((value): Row[] => [
      [`from ${value.address.type}`, args(value, to, data)],
      [`to ${value.address.type}`, args(from, value, data)],
    ]),
    ['to nobody', args(from, xdr.ScVal.scvVoid(), data)],
    ...[xdr.ScVal.scvString('data'), xdr.ScVal.scvVoid(), xdr.ScVal.scvVec([data]), to].map((value): Row => {
      return [`data as ${value.type}`, args(from, to, value)]
    }),
  ),
  ...refuse(
    'not-payer',
    ['from a stranger', args(scAddress(stranger.publicKey()), to, data)],
    ['from the sponsor', args(scAddress(sponsor.publicKey()), to, data)],
    ['from a contract', args(scAddress(otherToken), to, data)],
  ),
  ...accept(
    ['to a contract', args(from, scAddress(otherToken), data)],
    ['to oneself', args(from, from, data)],
    ['no bytes in the data', args(from, to, xdr.ScVal.scvBytes(new Uint8Array(0)))],
  ),
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
const {
  sorobanAuthorizedFunctionTypeContractFn: contractFn,
  sorobanAuthorizedFunctionTypeCreateContractHostFn: creationFn,
  sorobanAuthorizedFunctionTypeCreateContractV2HostFn: creationV2Fn,
} = xdr.SorobanAuthorizedFunction
const rootOf = (root: xdr.SorobanAuthorizedFunction) =>
  new xdr.SorobanAuthorizedInvocation({ function: root, subInvocations: [] })
const {
  sorobanCredentialsSourceAccount: bySource,
  sorobanCredentialsAddress: byAddress,
  sorobanCredentialsAddressV2: byAddressV2,
  sorobanCredentialsAddressWithDelegates: byDelegates,
} = xdr.SorobanCredentials
const entryOf = (root: xdr.SorobanAuthorizedFunction) =>
  new xdr.SorobanAuthorizationEntry({ credentials: bySource(), rootInvocation: rootOf(root) })

const authorization: PolicyCase[] = [
  ...accept(['no authorization', { auth: [] }]),
  ...refuse(
    'auth-count',
    ['two authorizations', { auth: [authorize(ours), authorize(ours)] }],
    [
      'a second authorization, by the sponsor',
      { auth: [authorize(ours), authorize(ours, byAddress(credentials(sponsor)))] },
    ],
  ),
  ...refuse(
    'auth-credentials',
    ...Object.entries({ payer, sponsor, faucet, channel, stranger }).flatMap(([name, key]) =>
      [
        byAddress(credentials(key)),
        byAddressV2(credentials(key)),
        byDelegates(delegates(key, stranger)),
        byDelegates(delegates(payer, key)),
      ].map((used, index): Row => [`${used.type} of the ${name} (${index})`, { auth: [authorize(ours, used)] }]),
    ),
  ),
  ...refuse(
    'auth-invocation',
    ...[
      transferCall({ contractAddress: new Address(otherToken).toScAddress() }),
      transferCall({ functionName: 'withdraw' }),
      transferCall({ args: [from, to] }),
      transferCall({ args: [from, scAddress(stranger.publicKey()), data] }),
      transferCall({ args: [from, to, xdr.ScVal.scvBytes(new Uint8Array(15_420).fill(8))] }),
    ].map((root, index): Row => [`the authorization of another call (${index})`, { auth: [authorize(root)] }]),
    ['a call below the call', { auth: [authorize(ours, undefined, [rootOf(contractFn(ours))])] }],
    ['the creation of a contract for a root', { auth: [entryOf(creationFn(createContract))] }],
    ['the creation of one with a constructor for a root', { auth: [entryOf(creationV2Fn(createContractV2))] }],
  ),
]

const payingAs = (key: typeof payer): Change => ({
  tx: { sourceAccount: ed25519(key) },
  call: { args: [scAddress(key.publicKey()), to, data] },
})
const controlled = [sponsor, faucet, channel]
const others = new Set([sponsor.publicKey(), faucet.publicKey()])

const addresses: PolicyCase[] = [
  ...refuse(
    'own-address',
    ...controlled.map((key, index): Row => [`an address of the service pays (${index})`, payingAs(key)]),
    ['an address of the service is called', {}, { controlled: new Set([...rules.contracts]) }],
  ),
  ...accept(
    ...controlled.map((key, index): Row => {
      return [`an address of the service is paid (${index})`, args(from, scAddress(key.publicKey()), data)]
    }),
    ['a channel pays, and is no address of the service for this caller', payingAs(channel), { controlled: others }],
  ),
]

const fees = (fee: number, resourceFee: bigint): Change => ({ tx: { fee }, sorobanData: { resourceFee } })
const money: PolicyCase[] = [
  ...refuse('no-resources', ['no resources', { tx: { ext: xdr.TransactionExt.v0() } }]),
  ...accept(
    ['a fee that covers its resources exactly', fees(90_560, 90_460n)],
    ['the least fee', fees(100, 0n)],
    ['an outer fee at the cap', fees(2_500_000, 90_460n)],
    ['the least sequence number of all', { tx: { seqNum: INT64.least } }],
    ['another cap, reached', {}, { maxFee: 181_120n }],
  ),
  ...refuse(
    'fee-below-resources',
    ['one stroop short of the inclusion fee', fees(90_559, 90_460n)],
    ['a resource fee above the fee (CAP-66)', fees(100, 90_460n)],
    ['no fee', fees(0, 0n)],
    ['a resource fee at the cap', fees(100, 5_000_000n)],
    ['a resource fee of -1', fees(90_560, -1n)],
    ['the least resource fee of all', fees(90_560, INT64.least)],
  ),
  ...refuse(
    'resource-fee-cap',
    ['a resource fee above the cap, the fee below', fees(100, 5_000_001n)],
    ['both above the cap', fees(6_000_000, 5_000_001n)],
    ['the largest resource fee of all', fees(90_560, INT64.most)],
  ),
  ...refuse(
    'fee-cap',
    ['an outer fee above the cap', fees(2_500_001, 90_460n)],
    ['the largest fee', fees(2 ** 32 - 1, 90_460n)],
    ['a fee that is small when cut to 32 bits once doubled', fees(2 ** 31 + 50_000, 90_460n)],
    ['another cap', {}, { maxFee: 181_119n }],
  ),
]

export const POLICY_CASES: readonly PolicyCase[] = [
  ...shape,
  ...time,
  ...calls,
  ...authorization,
  ...addresses,
  ...money,
]
