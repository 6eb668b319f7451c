import { Account, rpc, type Transaction, xdr } from '@stellar/stellar-sdk'
import { expect, test } from 'vitest'
import { applySoroban } from '#lib/devnet/apply/soroban-application.ts'
import { auditorKeyKey } from '#lib/devnet/host/auditor-registry.ts'
import { confidentialAccountKey } from '#lib/devnet/host/token/account.ts'
import { simulateTransaction } from '#lib/devnet/rpc/simulation.ts'
import { readEnvelope } from '#lib/devnet/transaction/envelope.ts'
import { checkResourceFee, checkResources } from '#lib/transfers/simulation.ts'
import { invoke } from '#lib/wallet/invocation.ts'
import { simulateCall } from '#lib/wallet/transaction.ts'
import { seededRandom } from '../transfers/random.ts'
import {
  apply,
  contractor,
  employer,
  enforce,
  ledger,
  type Network,
  openNetwork,
  passphrase,
  type Request,
  record,
  stranger,
} from './host-fixture.ts'
import { depositRequest, fund, mergeRequest, registerRequest, transferRequest } from './host-payload.ts'

const DAY = 17_280
const { sequence: signedIn } = ledger

const base = openNetwork()
fund(base, employer, contractor)
apply(base, registerRequest(base, stranger, 31n))
apply(base, depositRequest(base, employer, stranger, 100n))
apply(base, mergeRequest(base, stranger))

const payment = transferRequest(base, { from: employer, to: contractor })

/** Other users' calls, which pay rent for entries that the payment reads. None affects the payment's proof. */
const BETWEEN: readonly Request[] = [
  depositRequest(base, employer, employer, 1n),
  depositRequest(base, employer, contractor, 1n),
  mergeRequest(base, contractor),
  transferRequest(base, { from: stranger, to: contractor }),
]

/** The entries whose lifetime the payment extends to 30 days when fewer than 29 are left. */
const EXTENDED = [
  confidentialAccountKey(base.contracts.token, employer.publicKey()),
  confidentialAccountKey(base.contracts.token, contractor.publicKey()),
  auditorKeyKey(base.contracts.auditor, 0),
]

/** For how many ledgers an entry is still paid: expired, about to expire, new, about to be extended, just extended. */
const LIFETIMES = [-DAY, 0, 7 * DAY - 1, 15 * DAY, 29 * DAY - 1, 29 * DAY, 30 * DAY - 1]

const simulateAt = ({ state }: Network, sequence: number, transaction: Transaction) => {
  const params = { transaction: transaction.toXdr(), authMode: transaction.signatures.length > 0 ? 'enforce' : '' }
  return simulateTransaction({ state, ledger: { ...ledger, sequence }, params })
}

/** Builds and signs the payment with the wallet, which simulates it on this network. */
async function signPayment(network: Network): Promise<Transaction> {
  const server = new rpc.Server('http://127.0.0.1:1', { allowHttp: true })
  server.simulateTransaction = async (transaction) => {
    const answer = simulateAt(network, signedIn, transaction as Transaction)
    return rpc.parseRawSimulation(JSON.parse(JSON.stringify({ ...answer, id: '', latestLedger: signedIn })))
  }
  const deployment = { rpc: server, passphrase, token: network.contracts.token }
  const operation = invoke(deployment, payment.name, payment.args)
  const signed = await simulateCall(deployment, new Account(employer.publicKey(), '7'), operation, {})
  signed.sign(employer)
  return signed
}

function applyIn(network: Network, sequence: number, request: Request): void {
  const recorded = record(network, request)
  if (!recorded.ok) throw new Error(recorded.error)
  const result = enforce(network, request, { auth: recorded.auth, ledger: { ...ledger, sequence } })
  if (!result.ok) throw new Error(result.error)
}

/** Checks the payment as the service does in ledger `sequence`, then applies it in the next one. */
function sponsor(network: Network, sequence: number, signed: Transaction): boolean {
  const { inner } = readEnvelope(signed.toXdr(), ledger.networkId)
  if (!inner.soroban) throw new Error('the payment declares no resources')
  const { transactionData = '', minResourceFee = '', error } = simulateAt(network, sequence, signed)
  expect(error).toBeUndefined()
  const needed = xdr.SorobanTransactionData.fromXdr(transactionData, 'base64')
  const { resources, resourceFee } = inner.soroban
  checkResources(resources, needed.resources)
  checkResourceFee({ fee: resourceFee, resources }, { fee: BigInt(minResourceFee), resources: needed.resources })
  return applySoroban(inner, employer.publicKey(), network.state.fork(), { ...ledger, sequence: sequence + 1 }).ok
}

const SEEDS = Array.from({ length: 8 }, (_, seed) => seed)

test.each(SEEDS)('accepts a payment up to ten ledgers after its simulation, and applies it (seed %i)', async (seed) => {
  const random = seededRandom(seed)
  for (let turn = 0; turn < 20; turn += 1) {
    const network = { ...base, state: base.state.fork() }
    for (const { id } of EXTENDED) {
      const entry = network.state.get(id)
      if (!entry) throw new Error('the entry is missing')
      const left = (LIFETIMES[random(LIFETIMES.length)] ?? 0) + random(12)
      network.state.put({ ...entry, liveUntil: signedIn + left })
    }
    const signed = await signPayment(network)
    const checkedIn = signedIn + random(11)
    const pending = [...BETWEEN]
    for (let sequence = signedIn + 1; sequence <= checkedIn; sequence += 1) {
      const [request] = pending.splice(random(2 * BETWEEN.length), 1)
      if (request) applyIn(network, sequence, request)
    }
    expect(sponsor(network, checkedIn, signed)).toBe(true)
  }
})
