import { readFileSync } from 'node:fs'
import type { FeeBumpTransaction, Keypair, rpc, Transaction } from '@stellar/stellar-sdk'
import { Account, Operation, scValToNative, TransactionBuilder, xdr } from '@stellar/stellar-sdk'
import { expect, test } from 'vitest'
import { NETWORK_LEDGER_LIMITS } from '#lib/devnet/devnet.ts'
import { sequenceUse } from '#lib/devnet/state/account.ts'
import { accountId } from '#lib/devnet/state/ledger-key.ts'
import { nonRefundableFee } from '#lib/devnet/transaction/fees.ts'
import {
  callTransfer,
  codeOf,
  declare,
  keypair,
  openTestNetwork,
  passphrase,
  pay,
  perturb,
  sorobanDataOf,
  type TestNetwork,
  wrap,
} from './network-fixture.ts'

/** Transactions on a new network, the real network's response to each, and its source. */
interface Vector {
  name: string
  source: string
  /** the contract calls that fit into a ledger (the queue has twice the room); testnet's limits by default */
  callsInLedger?: number
  transactions: Record<string, Draft>
  steps: Step[]
}

interface Draft {
  /** 1 XLM to root; a transfer of XLM to itself by contract call; a bump of the account `other` to its own number */
  kind: 'payment' | 'call' | 'bumpSequence'
  /** the source account; `payer` by default */
  from?: string
  /** the signers; the source account by default */
  signers?: string[]
  /** offset of its sequence number from the next one */
  number?: number
  fee?: number
  /** fee in stroops of a fee bump by the account `sponsor` */
  wrap?: string
  /** seconds after the last ledger */
  minTime?: number
  maxTime?: number
  /** of a call: stroops on top of its resource fee, and declared resources */
  offer?: number
  instructions?: number
  diskReadBytes?: number
  writeBytes?: number
  resourceFee?: number
  /** additional keys in its footprint */
  readOnly?: ('data' | 'nativeLine' | 'payer')[]
}

type Step =
  | {
      /** its result code or status */
      send: string
      answer: string
      feeCharged?: string
      /** the error, a text and numbers; more numbers may follow */
      diagnostic?: string[]
      /** the sufficient bid, derived from `feeCharged` */
      offerNeeded?: string
    }
  | { close: number }
  | {
      find: string
      status: string
      feeCharged?: string
      /** the accounts in txChangesBefore, in order */
      before?: string[]
    }
  /** getFeeStats of classic transactions */
  | { fees: object }
  /** the account whose sequence number the last ledger used */
  | { used: string }

const VECTORS: Vector[] = JSON.parse(readFileSync(new URL('vectors/transactions.json', import.meta.url), 'utf8'))

test.each(VECTORS)('$name ($source)', async ({ callsInLedger, transactions, steps }) => {
  const { soroban } = NETWORK_LEDGER_LIMITS
  const limits = callsInLedger
    ? { limits: { ...NETWORK_LEDGER_LIMITS, soroban: { ...soroban, operations: callsInLedger } } }
    : {}
  const network = await openTestNetwork(limits)
  try {
    await network.createAccounts(keypair('payer'), keypair('other'), keypair('sponsor'))
    const byName = new Map<string, Transaction | FeeBumpTransaction>()
    for (const [name, draft] of Object.entries(transactions)) byName.set(name, await make(network, draft))
    const transactionNamed = (name: string) => {
      const transaction = byName.get(name)
      if (!transaction) throw new Error(`no transaction ${name}`)
      return transaction
    }
    for (const step of steps) {
      if ('send' in step)
        check(step, transactionNamed(step.send), await network.server.sendTransaction(transactionNamed(step.send)))
      else if ('close' in step) for (let count = 0; count < step.close; count += 1) network.close()
      else if ('find' in step) await find(network, step, transactionNamed(step.find))
      else if ('fees' in step) expect((await network.server.getFeeStats()).inclusionFee).toMatchObject(step.fees)
      else {
        const { sequence } = await network.server.getLatestLedger()
        expect(sequenceUse(await network.account(keypair(step.used))).ledger).toBe(sequence)
      }
    }
  } finally {
    await network.stop()
  }
})

function check(
  step: Extract<Step, { send: string }>,
  transaction: Transaction | FeeBumpTransaction,
  sent: rpc.Api.SendTransactionResponse,
): void {
  expect(codeOf(sent)).toBe(step.answer)
  const charged = sent.errorResult?.feeCharged
  if (step.feeCharged !== undefined) expect(String(charged)).toBe(step.feeCharged)
  if (step.offerNeeded !== undefined) {
    if ('innerTransaction' in transaction) throw new Error('a fee bump has no resource fee')
    expect(String((charged ?? 0n) - sorobanDataOf(transaction).resourceFee)).toBe(step.offerNeeded)
  }
  if (!step.diagnostic) return
  const body = sent.diagnosticEvents?.[0]?.event.body.v0
  const [, error] = body?.topics ?? []
  const data = body && scValToNative(body.data)
  const diagnostic = [describe(error), ...(Array.isArray(data) ? data : [data]).map(String)]
  expect(diagnostic.slice(0, step.diagnostic.length)).toEqual(step.diagnostic)
}

function describe(error: xdr.ScVal | undefined): string {
  if (error?.type !== 'scvError' || error.error.type === 'sceContract') return 'no error of the host'
  return `Error(${error.error.type.slice('sce'.length)}, ${error.error.code.name.slice('scec'.length)})`
}

async function find(
  network: TestNetwork,
  step: Extract<Step, { find: string }>,
  transaction: Transaction | FeeBumpTransaction,
): Promise<void> {
  const response = await network.find(transaction)
  expect(response.status).toBe(step.status)
  if (response.status === 'NOT_FOUND') return
  if (step.feeCharged !== undefined) expect(String(response.resultXdr.feeCharged)).toBe(step.feeCharged)
  if (!step.before || response.resultMetaXdr.type !== 'v4') return
  const owners = response.resultMetaXdr.v4.txChangesBefore.map((change) => {
    const entry = change.type === 'ledgerEntryState' || change.type === 'ledgerEntryUpdated' ? change.value : undefined
    return entry?.data.type === 'account' ? accountId(entry.data.account.accountId) : undefined
  })
  expect(owners).toEqual(step.before.map((name) => keypair(name).publicKey()))
}

async function make(network: TestNetwork, draft: Draft): Promise<Transaction | FeeBumpTransaction> {
  const { kind, from = 'payer', number = 0, fee = 100, minTime, maxTime } = draft
  const source = keypair(from)
  const account = await network.server.getAccount(source.publicKey()).catch(() => new Account(source.publicKey(), '0'))
  const plain = new TransactionBuilder(account, { fee: String(fee), networkPassphrase: passphrase })
    .addOperation(operationOf(kind, source))
    .setTimeout(0)
    .build()
  const called = kind === 'call' ? withDeclared(await network.server.prepareTransaction(plain), draft) : plain
  const now = Math.floor(network.clock.now / 1000)
  const bounds = new xdr.TimeBounds({
    minTime: minTime === undefined ? 0n : BigInt(now + minTime),
    maxTime: maxTime === undefined ? 0n : BigInt(now + maxTime),
  })
  const signers = (draft.signers ?? [from]).map(keypair)
  const changes = { seqNum: BigInt(called.sequence) + BigInt(number), cond: xdr.Preconditions.precondTime(bounds) }
  const signed = perturb(called, changes, ...signers)
  return draft.wrap === undefined ? signed : wrap(signed, keypair('sponsor'), BigInt(draft.wrap))
}

function operationOf(kind: Draft['kind'], source: Keypair): xdr.Operation {
  if (kind === 'payment') return pay()
  if (kind === 'bumpSequence') return Operation.bumpSequence({ bumpTo: '5', source: keypair('other').publicKey() })
  return callTransfer(source, source, 1n)
}

/** The call with the vector's resources, and a resource fee that covers them unless the vector has one. */
function withDeclared(prepared: Transaction | FeeBumpTransaction, draft: Draft): Transaction {
  if ('innerTransaction' in prepared) throw new Error('not a plain transaction')
  const { resources } = sorobanDataOf(prepared)
  const { instructions, diskReadBytes, writeBytes } = { ...resources, ...draft }
  const declared = declare(prepared, (data) => {
    const set = data.setResources(instructions, diskReadBytes, writeBytes)
    return draft.readOnly ? set.setReadOnly(draft.readOnly.map(keyOf)) : set
  })
  // Room for signatures, and for rent and events.
  const size = prepared.toEnvelope().toXdr().length + 400
  const resourceFee = draft.resourceFee ?? Number(nonRefundableFee(sorobanDataOf(declared).resources, size)) + 50_000
  return declare(declared, (data) => data.setResourceFee(resourceFee), { fee: resourceFee + (draft.offer ?? 100) })
}

function keyOf(name: 'data' | 'nativeLine' | 'payer'): xdr.LedgerKey {
  const owner = xdr.PublicKey.publicKeyTypeEd25519(keypair('payer').rawPublicKey())
  if (name === 'data') return xdr.LedgerKey.data(new xdr.LedgerKeyData({ accountId: owner, dataName: 'x' }))
  if (name === 'payer') return xdr.LedgerKey.account(new xdr.LedgerKeyAccount({ accountId: owner }))
  const asset = xdr.TrustLineAsset.assetTypeNative()
  return xdr.LedgerKey.trustline(new xdr.LedgerKeyTrustLine({ accountId: owner, asset }))
}
