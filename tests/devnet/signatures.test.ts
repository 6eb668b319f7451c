import { createHash } from 'node:crypto'
import { Asset, type Keypair, Operation, type Transaction, xdr } from '@stellar/stellar-sdk'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { codeOf, keypair, openTestNetwork, perturb, resultCodes, root, type TestNetwork } from './network-fixture.ts'

const second = keypair('second signer')
const third = keypair('third signer')
const preimage = createHash('sha256').update('a secret').digest()

let network: TestNetwork
let account: Keypair
let count = 0

beforeAll(async () => {
  network = await openTestNetwork()
})
afterAll(() => network.stop())
beforeEach(async () => {
  count += 1
  account = keypair(`account ${count}`)
  await network.found(account)
})

const pay = () => Operation.payment({ destination: root.publicKey(), asset: Asset.native(), amount: '1' })

async function configure(...operations: xdr.Operation[]) {
  const transaction = await network.draft(account, operations)
  transaction.sign(account)
  expect((await network.settle(transaction)).status).toBe('SUCCESS')
}

async function submit(operations: xdr.Operation[], sign: (transaction: Transaction) => void): Promise<string> {
  const transaction = await network.draft(account, operations)
  sign(transaction)
  const code = codeOf(await network.server.sendTransaction(transaction))
  network.close()
  return code
}

const by =
  (...signers: Keypair[]) =>
  (transaction: Transaction) =>
    transaction.sign(...signers)
const signer = (key: Keypair, weight: number) =>
  Operation.setOptions({ signer: { ed25519PublicKey: key.publicKey(), weight } })

test('weights add up to the medium threshold of a payment', async () => {
  await configure(
    signer(second, 1),
    signer(third, 1),
    Operation.setOptions({ masterWeight: 1, lowThreshold: 1, medThreshold: 2, highThreshold: 3 }),
  )
  expect(await submit([pay()], by(account))).toBe('txFailed opBadAuth')
  expect(await submit([pay()], by(account, second))).toBe('PENDING')
  expect(await submit([pay()], by(second, third))).toBe('PENDING')
  // The third valid signature is not needed by any check, hence it is one too many.
  expect(await submit([pay()], by(account, second, third))).toBe('txBadAuthExtra')
  const control = [Operation.setOptions({ lowThreshold: 1 })]
  expect(await submit(control, by(account, second))).toBe('txFailed opBadAuth')
  expect(await submit(control, by(account, second, third))).toBe('PENDING')
  expect(await submit([Operation.setOptions({ homeDomain: 'example.org' })], by(account, second))).toBe('PENDING')
  expect(await submit([Operation.bumpSequence({ bumpTo: '1' })], by(account))).toBe('PENDING')
})

test('a check stops at the signature that completes it, so the order of two full ones does not matter', async () => {
  await configure(signer(second, 1))
  expect(await submit([pay()], by(account, second))).toBe('txBadAuthExtra')
  expect(await submit([pay()], by(second))).toBe('PENDING')
})

test('a master key of weight 0 signs nothing', async () => {
  await configure(signer(second, 1), Operation.setOptions({ masterWeight: 0 }))
  expect(await submit([pay()], by(account))).toBe('txBadAuth')
  expect(await submit([pay()], by(second))).toBe('PENDING')
})

test('a hash preimage signs', async () => {
  const sha256Hash = createHash('sha256').update(preimage).digest()
  await configure(Operation.setOptions({ signer: { sha256Hash, weight: 1 } }))
  expect(await submit([pay()], (transaction) => transaction.signHashX(preimage))).toBe('PENDING')
})

test('a signed payload signs with the hint of key and payload', async () => {
  const payload = Buffer.from('an invoice')
  const extra = xdr.SignerKey.signerKeyTypeEd25519SignedPayload(
    new xdr.SignerKeyEd25519SignedPayload({ ed25519: second.rawPublicKey(), payload }),
  )
  const set = new xdr.SetOptionsOp({
    inflationDest: null,
    clearFlags: null,
    setFlags: null,
    masterWeight: null,
    lowThreshold: null,
    medThreshold: null,
    highThreshold: null,
    homeDomain: null,
    signer: new xdr.Signer({ key: extra, weight: 1 }),
  })
  await configure(new xdr.Operation({ sourceAccount: null, body: xdr.OperationBody.setOptions(set) }))
  const sign = (transaction: Transaction) => transaction.addDecoratedSignature(second.signPayloadDecorated(payload))
  expect(await submit([pay()], sign)).toBe('PENDING')
})

test('a pre-authorised transaction needs no signature and its signer goes with it', async () => {
  const current = await network.account(account)
  const next = perturb(await network.draft(account, [pay()]), { seqNum: current.seqNum + 2n })
  await configure(Operation.setOptions({ signer: { preAuthTx: next.hash(), weight: 1 } }))
  expect((await network.account(account)).signers).toHaveLength(1)
  expect((await network.settle(next)).status).toBe('SUCCESS')
  const after = await network.account(account)
  expect(after.signers).toEqual([])
  expect(after.numSubEntries).toBe(0)
})

test('an operation of another account needs that account too', async () => {
  const other = keypair(`other ${count}`)
  await network.found(other)
  const operation = Operation.manageData({ name: 'a', value: 'b', source: other.publicKey() })
  expect(await submit([operation], by(account))).toBe('txFailed opBadAuth')
  expect(await submit([operation], by(account, other))).toBe('PENDING')
})

test('an account can be made and act in one transaction', async () => {
  const fresh = keypair(`fresh ${count}`)
  const transaction = await network.draft(account, [
    Operation.createAccount({ destination: fresh.publicKey(), startingBalance: '5' }),
    Operation.manageData({ name: 'a', value: 'b', source: fresh.publicKey() }),
  ])
  transaction.sign(account, fresh)
  expect((await network.settle(transaction)).status).toBe('SUCCESS')
})

test('signers that went in the same ledger are missed at apply: fee and sequence number are gone', async () => {
  const other = keypair(`remover ${count}`)
  await network.found(other)
  await configure(signer(other, 1))
  const before = await network.account(account)
  const removal = await network.build(
    other,
    Operation.setOptions({ signer: { ed25519PublicKey: other.publicKey(), weight: 0 }, source: account.publicKey() }),
  )
  const transaction = await paymentAppliedAfter(removal, other)
  for (const each of [transaction, removal]) {
    expect((await network.server.sendTransaction(each)).status).toBe('PENDING')
  }
  network.close()
  const outcome = await network.server.getTransaction(Buffer.from(transaction.hash()).toString('hex'))
  if (outcome.status !== 'FAILED') throw new Error(`the transaction ended as ${outcome.status}`)
  expect(resultCodes(outcome.resultXdr)).toEqual(['txBadAuth'])
  expect(outcome.resultXdr.feeCharged).toBe(100n)
  const after = await network.account(account)
  expect(after.seqNum).toBe(before.seqNum + 1n)
  expect(after.balance).toBe(before.balance - 100n)
})

/** Within a ledger accounts come in the order of their envelopes' hashes: tries amounts until the payment is later. */
async function paymentAppliedAfter(first: Transaction, signedBy: Keypair): Promise<Transaction> {
  const rank = (transaction: Transaction) => createHash('sha256').update(transaction.toEnvelope().toXdr()).digest('hex')
  for (let amount = 1; amount < 100; amount += 1) {
    const native = { destination: root.publicKey(), asset: Asset.native(), amount: String(amount) }
    const transaction = await network.draft(account, [Operation.payment(native)])
    transaction.sign(signedBy)
    if (rank(transaction) > rank(first)) return transaction
  }
  throw new Error('no payment with a later hash')
}
