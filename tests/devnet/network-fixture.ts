import { createHash } from 'node:crypto'
import {
  type Account,
  type FeeBumpTransaction,
  Keypair,
  Operation,
  rpc,
  type Transaction,
  TransactionBuilder,
  xdr,
} from '@stellar/stellar-sdk'
import { devnetKeys } from '#lib/devnet/apply/keys.ts'
import { type Devnet, type DevnetOptions, startDevnet } from '#lib/devnet/devnet.ts'

export const passphrase = 'Standalone Network ; February 2017'
export const { root, issuer } = devnetKeys(passphrase)

/** The same key for the same name, in every run. */
export const keypair = (name: string): Keypair => Keypair.fromRawEd25519Seed(createHash('sha256').update(name).digest())

export interface TestNetwork {
  readonly devnet: Devnet
  /** an unmodified SDK client, over HTTP */
  readonly server: rpc.Server
  /** unix milliseconds; moves only when a test moves it */
  readonly clock: { now: number }
  /** Lets five seconds pass and closes a ledger. */
  close(): void
  /** A transaction of `signer` with its next sequence number, not signed. */
  draft(source: Keypair, operations: xdr.Operation[], fee?: string): Promise<Transaction>
  /** A signed transaction of one source. */
  build(source: Keypair, ...operations: xdr.Operation[]): Promise<Transaction>
  /** Sends, closes a ledger and reads the outcome. */
  settle(transaction: Transaction | FeeBumpTransaction): Promise<rpc.Api.GetTransactionResponse>
  /** Makes accounts with 100 XLM each, in one transaction of the root account. */
  found(...accounts: Keypair[]): Promise<void>
  account(id: Keypair): Promise<xdr.AccountEntry>
  stop(): Promise<void>
}

/** A devnet whose ledgers close, and whose clock moves, only on command. */
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
    settle,
    async found(...accounts) {
      const make = (account: Keypair) =>
        Operation.createAccount({ destination: account.publicKey(), startingBalance: '100' })
      const outcome = await settle(await build(root, ...accounts.map(make)))
      if (outcome.status !== 'SUCCESS') throw new Error(`accounts were not made: ${outcome.status}`)
    },
    account: (id) => server.getAccountEntry(id.publicKey()),
    stop: devnet.close,
  }
}

/** The result code of a refused submission, inner one of a fee bump included: `txFeeBumpInnerFailed txBadSeq`. */
export function codeOf(sent: rpc.Api.SendTransactionResponse): string {
  return sent.errorResult ? resultCodes(sent.errorResult).join(' ') : sent.status
}

/** Transaction code, inner transaction code, operation codes that are not success. */
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

/** The transaction rebuilt with some fields of its XDR changed, signed anew. */
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
