import { bytesToHex } from '@noble/hashes/utils.js'
import {
  Account,
  Keypair,
  Operation,
  rpc,
  StrKey,
  type Transaction,
  TransactionBuilder,
  xdr,
} from '@stellar/stellar-sdk'
import { isExtendable, markedAsArchived, readEntries } from '#lib/stellar/entries.ts'
import { reachLedger } from '#lib/stellar/ledger-error.ts'
import { untilHostAnswers } from '#lib/stellar/simulation.ts'
import { formatUnits } from '#lib/text/money.ts'
import type { TokenOnNetwork } from './deployment.ts'
import { allowForFirstUse } from './first-use.ts'
import { addressOf, addSignature, type Signer } from './signer.ts'
import { WalletError } from './wallet-error.ts'

/**
 * Seconds for which a call can be applied by default. An envelope that is lost on its way to the validators can be included
 * once its node has queued it for four ledgers and banned it for ten, and a minute after the validators demanded it:
 * 70 seconds after its submission if a ledger closes every five, and up to two minutes if ledgers close more often.
 */
export const VALIDITY_SECONDS = 180

export interface CallOptions {
  /** The call expires after this many seconds, VALIDITY_SECONDS by default. A sponsor accepts 10 to 330 s. */
  seconds?: number
  /** Inclusion fee in stroops; 100 by default, enough under a fee bump, whose sponsor outbids it. */
  inclusionFee?: number
  /**
   * Stroops on top of the simulated resource fee, by default RENT_MARGIN for each entry whose lifetime may be extended. The
   * unused part is refunded to the fee source.
   */
  margin?: bigint
  /** The source account with its current sequence number, which building raises; read from the ledger by default. */
  source?: Account
}

/**
 * Stroops, for each entry of the call whose lifetime the contract extends, for rent that falls due after the simulation. The
 * contract extends an entry once less than 29 days are left, and each may cross that threshold before the call is applied.
 * The largest, an account's, then costs 10,514 stroops. Simulation may also measure rent too low (stellar-rpc issue 918).
 */
export const RENT_MARGIN = 11_000n

/** Stroops, the default of `maxResourceFee`: 0.5 XLM, as much as a sponsor pays by default. */
export const MAX_RESOURCE_FEE = 5_000_000n

/** A signed call, to be submitted as it is or wrapped in a fee bump. */
export interface SignedCall {
  /** Base64 envelope. */
  signedXdr: string
  /** Hex hash of the transaction. */
  hash: string
  /** Unix seconds after which the call can no longer be applied. */
  maxTime: number
}

/** Submits a signed call, and resolves once it has been applied. */
export type SubmitCall = (signedXdr: string) => Promise<unknown>

/**
 * The source account for the next call of `signer`. Reads its entry, because the SDK's `getAccount` also reports "not found"
 * while the RPC is away.
 * @throws WalletError `no-account`; LedgerError `unavailable`
 */
export async function readSource(
  deployment: TokenOnNetwork,
  signer: Keypair | Signer,
  options: CallOptions,
): Promise<Account> {
  if (options.source) return options.source
  const address = addressOf(signer)
  const accountId = Keypair.fromPublicKey(address).xdrAccountId()
  const key = xdr.LedgerKey.account(new xdr.LedgerKeyAccount({ accountId }))
  for (let reading = 1; ; reading += 1) {
    const [found] = (await readEntries(deployment.rpc, [key])).entries
    if (found?.val.type === 'account') return new Account(address, String(found.val.account.seqNum))
    // A node that lags does not have an account that was just created.
    if (reading === READINGS) {
      throw new WalletError('no-account', `there is no account ${address} on the network: fund it first`)
    }
    await new Promise((resolve) => setTimeout(resolve, READING_MS))
  }
}

/** How often, and at which intervals (ms), the ledger is read until it shows what was just applied: nodes lag by seconds. */
const READINGS = 12
const READING_MS = 250

/** Waits until the RPC shows an applied transaction, so that what is read next includes it. Resolves to whether it succeeded; false also after `waitMs`. */
export async function untilSeen(
  server: Pick<rpc.Server, 'getTransaction'>,
  hash: string,
  waitMs = READINGS * READING_MS,
): Promise<boolean> {
  for (let waited = 0; ; waited += READING_MS) {
    const { status } = await reachLedger(server.getTransaction(hash))
    if (status !== 'NOT_FOUND') return status === 'SUCCESS'
    if (waited >= waitMs) return false
    await new Promise((resolve) => setTimeout(resolve, READING_MS))
  }
}

/**
 * The network's response to a simulation: the resources that the call needs, margins included, and the ledger on which
 * it ran.
 */
export interface CallSimulation {
  resources: xdr.SorobanResources
  /** the keys, base64, of the entries that the call restores */
  archived: readonly string[]
  /** stroops */
  minResourceFee: bigint
  latestLedger: number
}

/**
 * Builds the call, simulates it, and adopts footprint, resources and fee. The authorization is the operation's own.
 * @throws WalletError `would-fail`, `fee-too-high`; LedgerError `unavailable`
 */
export async function simulateCall(
  deployment: TokenOnNetwork,
  source: Account,
  operation: xdr.Operation,
  options: CallOptions,
): Promise<Transaction> {
  return (await prepareCall(deployment, source, operation, options)).transaction
}

/**
 * `simulateCall`, which also returns the simulation. The operation's authorization is enforced, as the network will do; an
 * operation without one can only be tried.
 */
export async function prepareCall(
  deployment: TokenOnNetwork,
  source: Account,
  operation: xdr.Operation,
  options: CallOptions,
): Promise<{ transaction: Transaction; simulation: CallSimulation }> {
  const transaction = buildCall(deployment, source, operation, options)
  const { body } = operation
  const isAuthorized = body.type === 'invokeHostFunction' && body.invokeHostFunctionOp.auth.length > 0
  const authMode = isAuthorized ? 'enforce' : undefined
  const ask = () => reachLedger(deployment.rpc.simulateTransaction(transaction, undefined, authMode))
  const simulation = await untilHostAnswers(ask, errorOf)
  if (rpc.Api.isSimulationError(simulation)) throw simulationFailed(simulation.error)
  const needed = simulation.transactionData.build()
  const { resources } = needed
  const { readOnly, readWrite } = resources.footprint
  const entries = [...readOnly, ...readWrite].filter(isExtendable).length
  const minResourceFee = BigInt(simulation.minResourceFee)
  const resourceFee = minResourceFee + (options.margin ?? RENT_MARGIN * BigInt(entries))
  const data = allowForFirstUse(simulation.transactionData.setResourceFee(resourceFee).build(), transaction)
  requireCheap(data.resourceFee, deployment)
  const { latestLedger } = simulation
  return {
    transaction: TransactionBuilder.cloneFrom(transaction).setSorobanData(data).build(),
    simulation: { resources, archived: markedAsArchived(needed), minResourceFee, latestLedger },
  }
}

/** The RPC names the fee, so without a bound it could spend all XLM of the account that pays. @throws WalletError `fee-too-high` */
function requireCheap(fee: bigint, { maxResourceFee: bound = MAX_RESOURCE_FEE }: TokenOnNetwork): void {
  if (fee <= bound) return
  const [cost, limit] = [fee, bound].map(formatUnits)
  throw new WalletError(
    'fee-too-high',
    `the call would cost up to ${cost} XLM in resource fees, and the bound is ${limit} XLM (maxResourceFee, --max-fee)`,
  )
}

/** A simulation needs a source account and reads nothing of it. */
const ANY_ACCOUNT = StrKey.encodeEd25519PublicKey(new Uint8Array(32))

/** Simulates a contract's function of one number, which changes nothing. @throws WalletError `would-fail`; LedgerError `unavailable` */
export async function simulateRead(
  network: TokenOnNetwork,
  contract: string,
  name: string,
  number: number,
): Promise<rpc.Api.SimulateTransactionSuccessResponse> {
  const call = { contract, function: name, args: [xdr.ScVal.scvU32(number)] }
  const operation = Operation.invokeContractFunction(call)
  const transaction = buildCall(network, new Account(ANY_ACCOUNT, '0'), operation, {})
  const simulation = await untilHostAnswers(() => reachLedger(network.rpc.simulateTransaction(transaction)), errorOf)
  if (rpc.Api.isSimulationError(simulation)) throw simulationFailed(simulation.error)
  return simulation
}

/** Builds a call without asking the network, and without resources. */
export function buildCall(
  deployment: TokenOnNetwork,
  source: Account,
  operation: xdr.Operation,
  options: CallOptions,
): Transaction {
  const maxTime = Math.floor((deployment.now ?? Date.now)() / 1000) + (options.seconds ?? VALIDITY_SECONDS)
  return new TransactionBuilder(source, {
    fee: String(options.inclusionFee ?? 100),
    networkPassphrase: deployment.passphrase,
    timebounds: { minTime: 0, maxTime },
  })
    .addOperation(operation)
    .build()
}

/** @throws WalletError `signature-invalid` */
export async function signCall(transaction: Transaction, signer: Keypair | Signer): Promise<SignedCall> {
  const signed = await addSignature(transaction, signer)
  return {
    signedXdr: signed.toXdr(),
    hash: bytesToHex(signed.hash()),
    maxTime: Number(signed.timeBounds?.maxTime ?? 0),
  }
}

const errorOf = (simulation: rpc.Api.SimulateTransactionResponse): string | undefined =>
  rpc.Api.isSimulationError(simulation) ? simulation.error : undefined

function simulationFailed(detail: string): WalletError {
  const contractError = /Error\(Contract, #(\d+)\)/.exec(detail)?.[1]
  const [headline = ''] = detail.split('\n')
  return new WalletError('would-fail', `the call would fail: ${headline.replace(/^HostError: /, '')}`, {
    contractError: contractError === undefined ? undefined : Number(contractError),
  })
}
