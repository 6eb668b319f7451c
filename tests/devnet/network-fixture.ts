import { createHash } from 'node:crypto'
import type { Account, FeeBumpTransaction, Transaction } from '@stellar/stellar-sdk'
import {
  Address,
  Asset,
  Contract,
  Keypair,
  nativeToScVal,
  Operation,
  rpc,
  SorobanDataBuilder,
  TransactionBuilder,
  xdr,
} from '@stellar/stellar-sdk'
import { afterAll, beforeAll, beforeEach } from 'vitest'
import { makeGenesis } from '#lib/devnet/apply/genesis.ts'
import { devnetKeys } from '#lib/devnet/apply/keys.ts'
import { type Ledger, openLedger } from '#lib/devnet/apply/ledger.ts'
import { type Devnet, type DevnetOptions, NETWORK_LEDGER_LIMITS, startDevnet } from '#lib/devnet/devnet.ts'
import type { LedgerRecord } from '#lib/devnet/state/record.ts'
import { STAND_IN_KEYS, verifyStandIn } from '#lib/prover/stand-in.ts'

export const passphrase = 'Standalone Network ; February 2017'
export const { root, issuer } = devnetKeys(passphrase)

/** The same key for the same name, in every run. */
export const keypair = (name: string): Keypair => Keypair.fromRawEd25519Seed(createHash('sha256').update(name).digest())

export interface TestNetwork {
  readonly devnet: Devnet
  /** an unmodified SDK client, over HTTP */
  readonly server: rpc.Server
  /** unix milliseconds; only tests change it */
  readonly clock: { now: number }
  /** Advances the clock by five seconds and closes a ledger. */
  close(): void
  /** An unsigned transaction of `source` with its next sequence number. */
  draft(source: Keypair, operations: xdr.Operation[], fee?: string): Promise<Transaction>
  /** A signed transaction of one source. */
  build(source: Keypair, ...operations: xdr.Operation[]): Promise<Transaction>
  /** An unsigned contract call of `source`, prepared by simulation. */
  prepare(source: Keypair, operation: xdr.Operation): Promise<Transaction>
  /** Submits a transaction and returns its error codes or its status. */
  send(transaction: Transaction | FeeBumpTransaction): Promise<string>
  find(transaction: Transaction | FeeBumpTransaction): Promise<rpc.Api.GetTransactionResponse>
  /** Submits a transaction, closes a ledger and returns the result. */
  settle(transaction: Transaction | FeeBumpTransaction): Promise<rpc.Api.GetTransactionResponse>
  /** Creates accounts with 100 XLM each in one transaction of the root account. */
  createAccounts(...accounts: Keypair[]): Promise<void>
  account(id: Keypair): Promise<xdr.AccountEntry>
  stop(): Promise<void>
}

/** A devnet whose ledgers close and whose clock advances only on command. */
export async function openTestNetwork(options: Partial<DevnetOptions> = {}): Promise<TestNetwork> {
  const clock = { now: Date.UTC(2027, 0, 4, 9) }
  const settings = { directory: null, port: 0, closeMs: 0, passphrase, now: () => clock.now, ...options }
  const devnet = await startDevnet(settings)
  const server = new rpc.Server(devnet.rpcUrl, { allowHttp: true })
  const close = () => {
    clock.now += 5000
    devnet.closeLedger()
  }
  const draft = async (source: Keypair, operations: xdr.Operation[], fee = '100') => {
    const account: Account = await server.getAccount(source.publicKey())
    const builder = new TransactionBuilder(account, { fee, networkPassphrase: passphrase })
    for (const operation of operations) builder.addOperation(operation)
    return builder.setTimeout(0).build()
  }
  const build = async (source: Keypair, ...operations: xdr.Operation[]) => {
    const transaction = await draft(source, operations)
    transaction.sign(source)
    return transaction
  }
  const find: TestNetwork['find'] = (transaction) => server.getTransaction(hashOf(transaction))
  const settle = async (transaction: Transaction | FeeBumpTransaction) => {
    const sent = await server.sendTransaction(transaction)
    if (sent.status !== 'PENDING') throw new Error(`${sent.status} ${codeOf(sent)}`)
    close()
    return await server.getTransaction(sent.hash)
  }
  return {
    devnet,
    server,
    clock,
    close,
    draft,
    build,
    prepare: async (source, operation) => {
      const prepared = await server.prepareTransaction(await draft(source, [operation]))
      if ('feeSource' in prepared) throw new Error('not a plain transaction')
      return prepared
    },
    send: async (transaction) => codeOf(await server.sendTransaction(transaction)),
    find,
    settle,
    async createAccounts(...accounts) {
      const make = (account: Keypair) =>
        Operation.createAccount({ destination: account.publicKey(), startingBalance: '100' })
      const outcome = await settle(await build(root, ...accounts.map(make)))
      if (outcome.status !== 'SUCCESS') throw new Error(`the accounts were not created: ${outcome.status}`)
    },
    account: (id) => server.getAccountEntry(id.publicKey()),
    stop: devnet.close,
  }
}

/** A network for all tests of a file. */
export function shareNetwork(options: Partial<DevnetOptions> = {}): TestNetwork {
  const network = {} as TestNetwork
  beforeAll(async () => void Object.assign(network, await openTestNetwork(options)))
  afterAll(() => network.stop())
  return network
}

/** Accounts with these names and 100 XLM each, new for every test. */
export function foundAccounts<Name extends string>(network: TestNetwork, ...names: Name[]): Record<Name, Keypair> {
  const accounts = {} as Record<Name, Keypair>
  let count = 0
  beforeEach(async () => {
    count += 1
    for (const name of names) accounts[name] = keypair(`${name} ${count}`)
    await network.createAccounts(...names.map((name) => accounts[name]))
  })
  return accounts
}

/** The record of a ledger without transactions. */
export const emptyRecord = (sequence: number): LedgerRecord => {
  const phase = { baseFee: '100', stages: [] }
  return {
    sequence,
    closeTime: sequence,
    hash: '',
    header: '',
    sorobanBytes: 0,
    phases: [phase, phase],
    transactions: [],
  }
}

/** A ledger without RPC that closes only on command. */
export function openBareLedger(options: Partial<Parameters<typeof openLedger>[0]> = {}): Ledger {
  return openLedger({
    limits: NETWORK_LEDGER_LIMITS,
    closeMs: 5000,
    memory: 0,
    historyLedgers: 1_000,
    directory: null,
    passphrase,
    verify: verifyStandIn,
    now: () => 0,
    genesis: (context) => makeGenesis(context, devnetKeys(passphrase), STAND_IN_KEYS).entries,
    ...options,
  })
}

export const hashOf = (transaction: { hash(): Uint8Array }): string => Buffer.from(transaction.hash()).toString('hex')

/** A payment of XLM to the root account. */
export const pay = (amount = '1', source?: Keypair): xdr.Operation =>
  Operation.payment({
    destination: root.publicKey(),
    asset: Asset.native(),
    amount,
    ...(source && { source: source.publicKey() }),
  })

/** A transfer of XLM by contract call. */
export function callTransfer(from: Keypair, to: Keypair, stroops: bigint): xdr.Operation {
  const [sender, recipient] = [from, to].map((account) => new Address(account.publicKey()).toScVal())
  if (!sender || !recipient) throw new Error('a transfer has two parties')
  const native = new Contract(Asset.native().contractId(passphrase))
  return native.call('transfer', sender, recipient, nativeToScVal(stroops, { type: 'i128' }))
}

/** The resources declared by a contract call. */
export function sorobanDataOf(transaction: Transaction): xdr.SorobanTransactionData {
  const envelope = transaction.toEnvelope()
  if (envelope.type !== 'envelopeTypeTx' || envelope.v1.tx.ext.type !== 'sorobanData') throw new Error('no call')
  return envelope.v1.tx.ext.sorobanData
}

/** The call with other declared resources. */
export function declare(
  transaction: Transaction,
  change: (builder: SorobanDataBuilder) => SorobanDataBuilder,
  fields: Parameters<typeof perturb>[1] = {},
  ...signers: Keypair[]
): Transaction {
  const data = change(new SorobanDataBuilder(sorobanDataOf(transaction))).build()
  return perturb(transaction, { ...fields, ext: xdr.TransactionExt.sorobanData(data) }, ...signers)
}

/** The result codes of a rejected submission, including a fee bump's inner one: `txFeeBumpInnerFailed txBadSeq`. */
export function codeOf(sent: rpc.Api.SendTransactionResponse): string {
  return sent.errorResult ? resultCodes(sent.errorResult).join(' ') : sent.status
}

/** Transaction code, inner transaction code, and failed operation codes. */
export function resultCodes({ result }: xdr.TransactionResult): string[] {
  if (result.type === 'txFeeBumpInnerSuccess' || result.type === 'txFeeBumpInnerFailed') {
    return [result.type, ...innerCodes(result.innerResultPair.result.result)]
  }
  return innerCodes(result)
}

function innerCodes(result: xdr.InnerTransactionResultResult | xdr.TransactionResultResult): string[] {
  if (result.type !== 'txFailed' && result.type !== 'txSuccess') return [result.type]
  const operations = result.results.map((one) => (one.type === 'opInner' ? one.tr.value.type : one.type))
  return [result.type, ...operations.filter((code) => !code.endsWith('Success'))]
}

/** A fee bump with any outer fee, signed by its source. */
export function wrap(inner: Transaction, feeSource: Keypair, fee: bigint): FeeBumpTransaction {
  const envelope = inner.toEnvelope()
  if (envelope.type !== 'envelopeTypeTx') throw new Error('a fee bump wraps a V1 envelope')
  const outer = new xdr.FeeBumpTransaction({
    feeSource: xdr.MuxedAccount.keyTypeEd25519(feeSource.rawPublicKey()),
    fee,
    innerTx: xdr.FeeBumpTransactionInnerTx.envelopeTypeTx(envelope.v1),
    ext: xdr.FeeBumpTransactionExt.v0(),
  })
  const whole = xdr.TransactionEnvelope.envelopeTypeTxFeeBump(
    new xdr.FeeBumpTransactionEnvelope({ tx: outer, signatures: [] }),
  )
  const bump = TransactionBuilder.fromXdr(whole.toXdr('base64'), passphrase)
  bump.sign(feeSource)
  if (!('feeSource' in bump)) throw new Error('not a fee bump')
  return bump
}

/** The transaction with some XDR fields replaced, signed again. */
export function perturb(
  transaction: Transaction,
  fields: Partial<ConstructorParameters<typeof xdr.Transaction>[0]>,
  ...signers: Keypair[]
): Transaction {
  const envelope = transaction.toEnvelope()
  if (envelope.type !== 'envelopeTypeTx') throw new Error('only V1 envelopes are perturbed')
  const tx = new xdr.Transaction({ ...envelope.v1.tx, ...fields })
  const changed = xdr.TransactionEnvelope.envelopeTypeTx(new xdr.TransactionV1Envelope({ tx, signatures: [] }))
  const rebuilt = TransactionBuilder.fromXdr(changed.toXdr('base64'), passphrase)
  if ('feeSource' in rebuilt) throw new Error('not a plain transaction')
  for (const signer of signers) rebuilt.sign(signer)
  return rebuilt
}
