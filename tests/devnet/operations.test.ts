import { Asset, type Keypair, Operation, type rpc, scValToNative, type xdr } from '@stellar/stellar-sdk'
import { beforeEach, expect, test } from 'vitest'
import { foundAccounts, issuer, keypair, pay, resultCodes, shareNetwork } from './network-fixture.ts'

const usdc = new Asset('USDC', issuer.publicKey())
const unknown = new Asset('NONE', keypair('no issuer').publicKey())

const network = shareNetwork()
const accounts = foundAccounts(network, 'holder', 'other')
let holder: Keypair
let other: Keypair
beforeEach(() => {
  ;({ holder, other } = accounts)
})

const settle = async (source: Keypair, ...operations: xdr.Operation[]) =>
  await network.settle(await network.build(source, ...operations))

async function outcome(source: Keypair, ...operations: xdr.Operation[]): Promise<string> {
  const settled = await settle(source, ...operations)
  if (settled.status === 'NOT_FOUND') throw new Error('the transaction is not in the ledger')
  return resultCodes(settled.resultXdr).join(' ')
}

const send = (to: Keypair, amount: string, asset = Asset.native()) =>
  Operation.payment({ destination: to.publicKey(), asset, amount })
const trust = (asset = usdc, limit?: string) =>
  Operation.changeTrust(limit === undefined ? { asset } : { asset, limit })
const balanceOf = async (account: Keypair) => (await network.server.getTrustline(account.publicKey(), usdc)).balance

test('creates accounts', async () => {
  const newcomer = keypair('made')
  const make = (startingBalance: string, to = newcomer) =>
    Operation.createAccount({ destination: to.publicKey(), startingBalance })
  expect(await outcome(holder, make('1', other))).toBe('txFailed createAccountAlreadyExist')
  expect(await outcome(holder, make('0.9999999'))).toBe('txFailed createAccountLowReserve')
  expect(await outcome(holder, make('99.9'))).toBe('txFailed createAccountUnderfunded')
  const settled = await settle(holder, make('1'))
  if (settled.status !== 'SUCCESS') throw new Error(settled.status)
  const account = await network.account(newcomer)
  expect(account.balance).toBe(10_000_000n)
  expect(account.seqNum).toBe(BigInt(settled.ledger) << 32n)
  expect(account.ext.type).toBe('v0')
  expect(changesOf(settled)).toEqual(['ledgerEntryState', 'ledgerEntryUpdated', 'ledgerEntryCreated'])
})

test('pays XLM', async () => {
  expect(await outcome(holder, send(keypair('nobody'), '1'))).toBe('txFailed paymentNoDestination')
  expect(await outcome(holder, send(other, '99.1'))).toBe('txFailed paymentUnderfunded')
  expect(await outcome(holder, send(other, '10'))).toBe('txSuccess')
  expect((await network.account(other)).balance).toBe(1_100_000_000n)
})

test('pays an issued asset', async () => {
  expect(await outcome(issuer, send(other, '5', usdc))).toBe('txFailed paymentNoTrust')
  expect(await outcome(holder, send(issuer, '5', usdc))).toBe('txFailed paymentSrcNoTrust')
  expect(await outcome(other, trust(usdc, '100'))).toBe('txSuccess')
  expect(await outcome(issuer, send(other, '100.0000001', usdc))).toBe('txFailed paymentLineFull')
  expect(await outcome(issuer, send(other, '100', usdc))).toBe('txSuccess')
  expect(await outcome(holder, trust())).toBe('txSuccess')
  expect(await outcome(other, send(holder, '100.0000001', usdc))).toBe('txFailed paymentUnderfunded')
  expect(await outcome(other, send(holder, '30', usdc))).toBe('txSuccess')
  expect(await outcome(holder, send(issuer, '10', usdc))).toBe('txSuccess')
  expect([await balanceOf(holder), await balanceOf(other)]).toEqual([200_000_000n, 700_000_000n])
})

test('adds and removes a trustline and its subentry', async () => {
  expect(await outcome(holder, trust(unknown))).toBe('txFailed changeTrustNoIssuer')
  expect(await outcome(holder, trust(usdc, '0'))).toBe('txFailed changeTrustInvalidLimit')
  expect(await outcome(holder, trust())).toBe('txSuccess')
  expect((await network.account(holder)).numSubEntries).toBe(1)
  expect(await outcome(issuer, send(holder, '2', usdc))).toBe('txSuccess')
  expect(await outcome(holder, trust(usdc, '1'))).toBe('txFailed changeTrustInvalidLimit')
  expect(await outcome(holder, send(issuer, '2', usdc))).toBe('txSuccess')
  expect(await outcome(holder, trust(usdc, '0'))).toBe('txSuccess')
  expect((await network.account(holder)).numSubEntries).toBe(0)
  expect(await outcome(holder, send(other, '98.6'), trust())).toBe('txFailed changeTrustLowReserve')
})

test('creates unauthorized trustlines if the issuer requires authorization', async () => {
  const strict = new Asset('EUR', other.publicKey())
  expect(await outcome(other, Operation.setOptions({ setFlags: 1 }))).toBe('txSuccess')
  expect(await outcome(holder, trust(strict))).toBe('txSuccess')
  expect(await outcome(other, send(holder, '1', strict))).toBe('txFailed paymentNotAuthorized')
})

test('sets options', async () => {
  const flags = (setFlags: 1 | 2 | 4 | 8) => Operation.setOptions({ setFlags })
  expect(await outcome(holder, Operation.setOptions({ inflationDest: keypair('nobody').publicKey() }))).toBe(
    'txFailed setOptionsInvalidInflation',
  )
  expect(await outcome(holder, flags(8))).toBe('txFailed setOptionsAuthRevocableRequired')
  expect(await outcome(holder, Operation.setOptions({ homeDomain: 'pay.example.org' }))).toBe('txSuccess')
  expect((await network.account(holder)).homeDomain.toString()).toBe('pay.example.org')
  expect(await outcome(holder, flags(4))).toBe('txSuccess')
  expect(await outcome(holder, flags(1))).toBe('txFailed setOptionsCantChange')
})

test('keeps at most twenty signers, sorted, with one subentry each', async () => {
  const signers = Array.from({ length: 20 }, (_, index) => keypair(`signer ${index}`))
  const add = (signer: Keypair, weight = 1) =>
    Operation.setOptions({ signer: { ed25519PublicKey: signer.publicKey(), weight } })
  expect(await outcome(holder, ...signers.map((signer) => add(signer)))).toBe('txSuccess')
  const account = await network.account(holder)
  const keys = account.signers.map(({ key }) => key.toXdr('hex'))
  expect(keys).toEqual(keys.toSorted())
  expect(account.numSubEntries).toBe(20)
  expect(await outcome(holder, add(keypair('one more')))).toBe('txFailed setOptionsTooManySigners')
  expect(await outcome(holder, add(keypair('signer 0'), 0), add(keypair('never there'), 0))).toBe('txSuccess')
  expect((await network.account(holder)).numSubEntries).toBe(19)
})

test('sets and removes data entries', async () => {
  const put = (value: string | null) => Operation.manageData({ name: 'note', value })
  expect(await outcome(holder, put(null))).toBe('txFailed manageDataNameNotFound')
  expect(await outcome(holder, put('first'))).toBe('txSuccess')
  expect(await outcome(holder, put('second'))).toBe('txSuccess')
  expect((await network.account(holder)).numSubEntries).toBe(1)
  expect(await outcome(holder, put(null))).toBe('txSuccess')
  expect((await network.account(holder)).numSubEntries).toBe(0)
})

test('never lowers the number with bumpSequence', async () => {
  const { seqNum } = await network.account(holder)
  const to = seqNum + 100n
  expect(await outcome(holder, Operation.bumpSequence({ bumpTo: String(to) }))).toBe('txSuccess')
  expect((await network.account(holder)).seqNum).toBe(to)
  expect(await outcome(holder, Operation.bumpSequence({ bumpTo: '5' }))).toBe('txSuccess')
  expect((await network.account(holder)).seqNum).toBe(to + 1n)
})

test('rolls back all operations if one fails, and returns a result for each', async () => {
  const outcome = await settle(holder, send(other, '1'), send(keypair('nobody'), '1'), send(other, '2'))
  if (outcome.status !== 'FAILED') throw new Error(outcome.status)
  const { result } = outcome.resultXdr
  const results = result.type === 'txFailed' ? result.results : []
  const codes = results.map((one) => one.type === 'opInner' && one.tr.value.type)
  expect(codes).toEqual(['paymentSuccess', 'paymentNoDestination', 'paymentSuccess'])
  expect((await network.account(other)).balance).toBe(1_000_000_000n)
  expect((await network.account(holder)).balance).toBe(1_000_000_000n - 300n)
  expect(changesOf(outcome)).toEqual([])
})

test('emits the asset contract’s events for classic payments (CAP-67)', async () => {
  await settle(holder, trust())
  const minted = await settle(issuer, send(holder, '7', usdc), send(other, '1'))
  const burnt = await settle(holder, send(issuer, '2', usdc))
  expect([...topicsOf(minted), ...topicsOf(burnt)]).toEqual([
    ['mint', holder.publicKey(), `USDC:${issuer.publicKey()}`],
    ['transfer', issuer.publicKey(), other.publicKey(), 'native'],
    ['burn', holder.publicKey(), `USDC:${issuer.publicKey()}`],
  ])
})

test('records the ledger of the last used sequence number (CAP-21)', async () => {
  const outcome = await settle(holder, pay())
  if (outcome.status !== 'SUCCESS') throw new Error(outcome.status)
  const { ext } = await network.account(holder)
  const v2 = ext.type === 'v1' && ext.v1.ext.type === 'v2' ? ext.v1.ext.v2.ext : undefined
  expect(v2?.type === 'v3' && [v2.v3.seqLedger, Number(v2.v3.seqTime)]).toEqual([
    outcome.ledger,
    Number(outcome.createdAt),
  ])
})

function changesOf(response: rpc.Api.GetTransactionResponse): string[] {
  if (response.status === 'NOT_FOUND' || response.resultMetaXdr.type !== 'v4')
    throw new Error('writes meta v4 for a transaction')
  return response.resultMetaXdr.v4.operations.flatMap(({ changes }) => changes.map(({ type }) => type))
}

function topicsOf(response: rpc.Api.GetTransactionResponse): unknown[][] {
  if (response.status !== 'SUCCESS') throw new Error(response.status)
  return response.events.contractEventsXdr.flat().map(({ body }) => body.v0.topics.map(scValToNative))
}
