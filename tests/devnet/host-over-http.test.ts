import {
  Address,
  Asset,
  authorizeEntry,
  BASE_FEE,
  Contract,
  contract,
  Keypair,
  nativeToScVal,
  rpc,
  scValToNative,
  TransactionBuilder,
  xdr,
} from '@stellar/stellar-sdk'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Devnet, startDevnet } from '#lib/devnet/devnet.ts'
import { prover } from '#lib/prover/stand-in.ts'
import { readConfidentialAccount } from '#lib/wallet/account.ts'
import { buildDeposit, buildMerge, buildRegister, buildTransfer, buildWithdraw } from '#lib/wallet/calls.ts'
import { type Opening, opens } from '#lib/wallet/commitment.ts'
import type { Deployment } from '#lib/wallet/deployment.ts'
import { type Holder, openHolder } from '#lib/wallet/keys.ts'
import { keypair, passphrase } from './host-fixture.ts'

let devnet: Devnet
let server: rpc.Server
let deployment: Deployment
let issuer: Keypair
let payer: Holder
let payee: Holder
const employer = keypair('employer over http')
const contractor = keypair('contractor over http')
let opening: Opening

beforeAll(async () => {
  devnet = await startDevnet({ directory: null, port: 0, closeMs: 0, passphrase })
  server = new rpc.Server(devnet.rpcUrl, { allowHttp: true })
  const { token, auditor } = devnet.deployment.contracts
  deployment = { rpc: server, passphrase, token, auditor, prover }
  issuer = Keypair.fromSecret(devnet.issuerSecret)
  payer = openHolder(employer, token)
  payee = openHolder(contractor, token)
  devnet.closeLedger()
  for (const { signer } of [payer, payee])
    await closingUntil(fetch(`${devnet.friendbotUrl}?addr=${signer.publicKey()}`))
})
afterAll(() => devnet?.close())

/** Closes ledgers while something waits for one. */
async function closingUntil<T>(waiting: Promise<T>): Promise<T> {
  let done = false
  const settled = waiting.finally(() => {
    done = true
  })
  while (!done) {
    devnet.closeLedger()
    await Promise.race([settled, new Promise((resolve) => setTimeout(resolve, 20))])
  }
  return settled
}

async function send(signedXdr: string): Promise<rpc.Api.GetTransactionResponse> {
  const sent = await server.sendTransaction(TransactionBuilder.fromXdr(signedXdr, passphrase))
  expect([sent.status, sent.errorResult]).toEqual(['PENDING', undefined])
  devnet.closeLedger()
  return server.getTransaction(sent.hash)
}

async function prepare(source: Keypair, operation: xdr.Operation) {
  const account = await server.getAccount(source.publicKey())
  const options = { fee: BASE_FEE, networkPassphrase: passphrase }
  return server.prepareTransaction(
    new TransactionBuilder(account, options).addOperation(operation).setTimeout(60).build(),
  )
}

it('takes the first transaction of an account, prepared by the SDK', async () => {
  const { native, token } = { ...devnet.deployment.contracts, native: Asset.native().contractId(passphrase) }
  const args = [employer.publicKey(), token].map((address) => new Address(address).toScVal())
  const transfer = new Contract(native).call('transfer', ...args, nativeToScVal(5n, { type: 'i128' }))
  const tx = await prepare(employer, transfer)
  tx.sign(employer)
  const { status } = await send(tx.toXdr())
  expect(status).toBe('SUCCESS')
  const reserve = await server.getAssetBalance(token, Asset.native(), passphrase)
  expect(reserve.balanceEntry?.amount).toBe('5')
})

it('carries a payment through its life', async () => {
  for (const holder of [payer, payee]) {
    const { signedXdr } = await buildRegister(deployment, holder, { auditorId: 0 })
    expect((await send(signedXdr)).status).toBe('SUCCESS')
  }
  const deposit = await buildDeposit(deployment, issuer, { to: employer.publicKey(), amount: 1_000n })
  expect((await send(deposit.signedXdr)).status).toBe('SUCCESS')
  const nothing = { value: 0n, blinding: 0n }
  const balance = { spendable: nothing, receiving: { value: 1_000n, blinding: 0n } }
  const merged = await buildMerge(deployment, employer, balance)
  expect((await send(merged.signedXdr)).status).toBe('SUCCESS')

  const payment = { to: contractor.publicKey(), amount: 400n, opening: merged.next ?? nothing }
  const paid = await buildTransfer(deployment, payer, payment)
  const answer = await send(paid.signedXdr)
  if (answer.status !== 'SUCCESS') throw new Error(answer.status)
  expect(answer.returnValue?.type).toBe('scvVoid')
  const topics = answer.events.contractEventsXdr[0]?.[0]?.body.value.topics.map((topic) => scValToNative(topic))
  expect(topics).toEqual(['transfer', employer.publicKey(), contractor.publicKey()])
  const account = await readConfidentialAccount(server, deployment.token, employer.publicKey())
  expect(account && opens(paid.next, account.spendable)).toBe(true)

  const withdrawal = { to: issuer.publicKey(), amount: 100n, opening: paid.next }
  const withdrawn = await buildWithdraw(deployment, payer, withdrawal)
  expect((await send(withdrawn.signedXdr)).status).toBe('SUCCESS')
  const usdc = new Asset('USDC', issuer.publicKey())
  const reserve = await server.getAssetBalance(deployment.token, usdc, passphrase)
  expect(reserve.balanceEntry?.amount).toBe('900')
  opening = withdrawn.next
})

it('fails the second of two payments that were proved against one balance', async () => {
  const payment = { to: contractor.publicKey(), amount: 1n, opening }
  const source = await server.getAccount(employer.publicKey())
  const first = await buildTransfer(deployment, payer, payment, { source })
  const second = await buildTransfer(deployment, payer, payment, { source })
  expect((await send(first.signedXdr)).status).toBe('SUCCESS')
  const answer = await send(second.signedXdr)
  if (answer.status !== 'FAILED') throw new Error(answer.status)
  const { result } = answer.resultXdr
  const [operation] = result.type === 'txFailed' ? result.results : []
  expect(operation?.type === 'opInner' && operation.tr.type === 'invokeHostFunction' && operation.tr.value.type).toBe(
    'invokeHostFunctionTrapped',
  )
  expect(JSON.stringify(answer.diagnosticEventsXdr?.map((event) => event.toJson()))).toContain('3506')
})

it('takes a call that another account authorised with the SDK', async () => {
  const merge = new Contract(deployment.token).call('merge', new Address(contractor.publicKey()).toScVal())
  const recorded = await prepare(employer, merge)
  const [operation] = recorded.operations
  const [entry] = operation?.type === 'invokeHostFunction' ? (operation.auth ?? []) : []
  if (!entry) throw new Error('nothing to sign')
  expect(entry.credentials.type).toBe('sorobanCredentialsAddressV2')
  const { latestLedger } = await server.getHealth()
  const signed = await authorizeEntry(entry, contractor, latestLedger + 50, passphrase)
  const hostFunction = xdr.HostFunction.hostFunctionTypeInvokeContract(
    new xdr.InvokeContractArgs({
      contractAddress: new Address(deployment.token).toScAddress(),
      functionName: 'merge',
      args: [new Address(contractor.publicKey()).toScVal()],
    }),
  )
  const body = xdr.OperationBody.invokeHostFunction(new xdr.InvokeHostFunctionOp({ hostFunction, auth: [signed] }))
  const tx = await prepare(employer, new xdr.Operation({ sourceAccount: null, body }))
  tx.sign(employer)
  expect((await send(tx.toXdr())).status).toBe('SUCCESS')
})

it('gives a generic client its interface, and answers what it reads', async () => {
  const client = await contract.Client.from({
    contractId: deployment.token,
    rpcUrl: devnet.rpcUrl,
    allowHttp: true,
    networkPassphrase: passphrase,
    publicKey: employer.publicKey(),
  })
  const read: unknown = Reflect.get(client, 'is_spender')
  if (typeof read !== 'function') throw new Error('no such function')
  const call = await read({ account: employer.publicKey(), spender: contractor.publicKey() })
  expect(call.result).toBe(false)
  expect(call.isReadCall).toBe(true)
})
