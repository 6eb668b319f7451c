import {
  Account,
  Address,
  Asset,
  Contract,
  type Keypair,
  nativeToScVal,
  Operation,
  rpc,
  StrKey,
  type Transaction,
  TransactionBuilder,
  xdr,
} from '@stellar/stellar-sdk'
import { FRIENDBOT_CHANNELS } from '../apply/genesis.ts'
import { friendbotChannel } from '../apply/keys.ts'
import type { Ledger } from '../apply/ledger.ts'
import { simulatedState } from '../rpc/simulated-state.ts'
import { simulateTransaction } from '../rpc/simulation.ts'
import { readAccount } from '../state/account.ts'
import type { Verdict } from '../transaction/queue.ts'

/** A funding transaction that was included in a ledger. */
export interface Funding {
  readonly hash: string
  readonly envelopeXdr: string
}

/** Friendbot's refusal. `field` names a malformed parameter. `isTemporary`: the network may have room later. */
export class FundingRefused extends Error {
  readonly field: string | undefined
  readonly isTemporary: boolean
  constructor(detail: string, { field, isTemporary = false }: { field?: string; isTemporary?: boolean } = {}) {
    super(detail)
    this.name = 'FundingRefused'
    this.field = field
    this.isTemporary = isTemporary
  }
}

const noRoom = () => new FundingRefused('The network has no room for the transaction.', { isTemporary: true })

const STARTING_XLM = '10000'
const STARTING_BALANCE = 10_000n * 10_000_000n
/** Ledgers to wait for an accepted transaction. */
const PATIENCE = 10

/**
 * Pays 10,000 XLM of the root account to a contract or an account, which it creates if necessary. Resolves once the payment
 * is included. Concurrent calls share a ledger: each uses the sequence number of another channel account.
 */
export function openFriendbot(ledger: Ledger, root: Keypair): (address: string) => Promise<Funding> {
  const free = Array.from({ length: FRIENDBOT_CHANNELS }, (_, index) => index)
  const queue: ((index: number) => void)[] = []

  const borrow = async (): Promise<number> => {
    const index = free.pop()
    if (index !== undefined) return index
    const { promise, resolve } = Promise.withResolvers<number>()
    queue.push(resolve)
    return await promise
  }
  const releaseChannel = (index: number) => {
    const next = queue.shift()
    if (next) next(index)
    else free.push(index)
  }

  return async (address) => {
    const index = await borrow()
    try {
      return await fund(address, ledger, root, friendbotChannel(ledger.passphrase, index))
    } finally {
      releaseChannel(index)
    }
  }
}

async function fund(address: string, ledger: Ledger, root: Keypair, channel: Keypair): Promise<Funding> {
  const operation = fundingOperation(address, ledger, root.publicKey())
  const transaction = assemble(operation, ledger, channel)
  transaction.sign(channel, root)
  const { envelope, verdict } = ledger.submit(transaction.toEnvelope().toXdr('base64'))
  if (isFull(verdict)) throw noRoom()
  if (verdict.status !== 'PENDING') throw new Error(`friendbot's transaction was not accepted: ${verdict.status}`)
  for (let waited = 0; waited < PATIENCE; waited += 1) {
    await ledger.closed()
    const included = ledger.history.find(envelope.hash)
    if (!included) continue
    if (included.transaction.ok) return { hash: envelope.hash, envelopeXdr: envelope.xdr }
    throw new FundingRefused(describeFailure(ledger.history.body(included).resultXdr))
  }
  throw noRoom()
}

/** A payment to a contract is a contract call, for which the queue may have no room. */
function isFull(verdict: Verdict): boolean {
  if (verdict.status === 'ERROR') return verdict.failure.code === 'txInsufficientFee'
  return verdict.status === 'TRY_AGAIN_LATER'
}

function fundingOperation(address: string, ledger: Ledger, source: string): xdr.Operation {
  if (StrKey.isValidContract(address)) {
    const amount = nativeToScVal(STARTING_BALANCE, { type: 'i128' })
    const args = [Address.fromString(source).toScVal(), Address.fromString(address).toScVal(), amount]
    const call = new Contract(Asset.native().contractId(ledger.passphrase)).call('transfer', ...args)
    const sourceAccount = xdr.MuxedAccount.keyTypeEd25519(StrKey.decodeEd25519PublicKey(source))
    return new xdr.Operation({ sourceAccount, body: call.body })
  }
  if (!StrKey.isValidEd25519PublicKey(address)) {
    throw new FundingRefused('The request you sent was invalid in some way.', { field: 'addr' })
  }
  const account = readAccount(ledger.state, address)
  if (!account) return Operation.createAccount({ destination: address, startingBalance: STARTING_XLM, source })
  if (account.balance >= STARTING_BALANCE) throw new FundingRefused('account already funded to starting balance')
  return Operation.payment({ destination: address, asset: Asset.native(), amount: STARTING_XLM, source })
}

function assemble(operation: xdr.Operation, ledger: Ledger, channel: Keypair): Transaction {
  const sequence = readAccount(ledger.state, channel.publicKey())?.seqNum ?? 0n
  const source = new Account(channel.publicKey(), String(sequence))
  const plain = new TransactionBuilder(source, { fee: '100', networkPassphrase: ledger.passphrase })
    .addOperation(operation)
    .setTimeout(0)
    .build()
  if (operation.body.type !== 'invokeHostFunction') return plain
  const state = simulatedState(ledger.state)
  const params = { transaction: plain.toEnvelope().toXdr('base64') }
  const simulated = simulateTransaction({ state, ledger: ledger.context(), params })
  const answer = { id: '', latestLedger: ledger.context().sequence, events: [], ...simulated }
  return rpc.assembleTransaction(plain, answer as rpc.Api.RawSimulateTransactionResponse).build()
}

/** Horizon's wording: the operation's result code, then the whole result. */
function describeFailure(resultXdr: string): string {
  const { result } = xdr.TransactionResult.fromXdr(resultXdr, 'base64')
  const [operation] = result.type === 'txFailed' ? result.results : []
  if (operation?.type !== 'opInner') return `${result.type} (${resultXdr})`
  return `${operation.tr.value.type} (${resultXdr})`
}
