import { createHash } from 'node:crypto'
import { type Keypair, Operation, type Transaction, xdr } from '@stellar/stellar-sdk'
import { beforeEach, expect, test } from 'vitest'
import { foundAccounts, keypair, pay, perturb, resultCodes, shareNetwork } from './network-fixture.ts'

const second = keypair('second signer')
const third = keypair('third signer')
const preimage = createHash('sha256').update('a secret').digest()

const network = shareNetwork()
const accounts = foundAccounts(network, 'account', 'other')
let account: Keypair
let other: Keypair
beforeEach(() => {
  ;({ account, other } = accounts)
})

async function configure(...operations: xdr.Operation[]) {
  expect((await network.settle(await network.build(account, ...operations))).status).toBe('SUCCESS')
}

async function submit(operations: xdr.Operation[], sign: (transaction: Transaction) => void): Promise<string> {
  const transaction = await network.draft(account, operations)
  sign(transaction)
  const code = await network.send(transaction)
  network.close()
  return code
}

const by =
  (...signers: Keypair[]) =>
  (transaction: Transaction) =>
    transaction.sign(...signers)
const signer = (key: Keypair, weight: number, source = account) =>
  Operation.setOptions({ signer: { ed25519PublicKey: key.publicKey(), weight }, source: source.publicKey() })

test("adds up weights to a payment's medium threshold", async () => {
  await configure(
    signer(second, 1),
    signer(third, 1),
    Operation.setOptions({ masterWeight: 1, lowThreshold: 1, medThreshold: 2, highThreshold: 3 }),
  )
  expect(await submit([pay()], by(account))).toBe('txFailed opBadAuth')
  expect(await submit([pay()], by(account, second))).toBe('PENDING')
  expect(await submit([pay()], by(second, third))).toBe('PENDING')
  // No check needs the third valid signature.
  expect(await submit([pay()], by(account, second, third))).toBe('txBadAuthExtra')
  const control = [Operation.setOptions({ lowThreshold: 1 })]
  expect(await submit(control, by(account, second))).toBe('txFailed opBadAuth')
  expect(await submit(control, by(account, second, third))).toBe('PENDING')
  expect(await submit([Operation.setOptions({ homeDomain: 'example.org' })], by(account, second))).toBe('PENDING')
  expect(await submit([Operation.bumpSequence({ bumpTo: '1' })], by(account))).toBe('PENDING')
})

test('stops at the signature that reaches the threshold, and leaves a second full one unused in either order', async () => {
  await configure(signer(second, 1))
  expect(await submit([pay()], by(account, second))).toBe('txBadAuthExtra')
  expect(await submit([pay()], by(second))).toBe('PENDING')
})

test('rejects a signature by a master key of weight 0', async () => {
  await configure(signer(second, 1), Operation.setOptions({ masterWeight: 0 }))
  expect(await submit([pay()], by(account))).toBe('txBadAuth')
  expect(await submit([pay()], by(second))).toBe('PENDING')
})

test('accepts a hash preimage as a signature', async () => {
  const sha256Hash = createHash('sha256').update(preimage).digest()
  await configure(Operation.setOptions({ signer: { sha256Hash, weight: 1 } }))
  expect(await submit([pay()], (transaction) => transaction.signHashX(preimage))).toBe('PENDING')
})

test('accepts a signed payload whose hint combines key and payload', async () => {
  const payload = Buffer.from('an invoice')
  const extra = xdr.SignerKey.signerKeyTypeEd25519SignedPayload(
    new xdr.SignerKeyEd25519SignedPayload({ ed25519: second.rawPublicKey(), payload }),
  )
  // The SDK has no API for such a signer.
  const { body } = signer(second, 1)
  if (body.type !== 'setOptions') throw new Error('no setOptions')
  const set = new xdr.SetOptionsOp({ ...body.setOptionsOp, signer: new xdr.Signer({ key: extra, weight: 1 }) })
  await configure(new xdr.Operation({ sourceAccount: null, body: xdr.OperationBody.setOptions(set) }))
  const sign = (transaction: Transaction) => transaction.addDecoratedSignature(second.signPayloadDecorated(payload))
  expect(await submit([pay()], sign)).toBe('PENDING')
})

test('accepts a pre-authorized transaction unsigned and removes its signer', async () => {
  const current = await network.account(account)
  const next = perturb(await network.draft(account, [pay()]), { seqNum: current.seqNum + 2n })
  await configure(Operation.setOptions({ signer: { preAuthTx: next.hash(), weight: 1 } }))
  expect((await network.account(account)).signers).toHaveLength(1)
  expect((await network.settle(next)).status).toBe('SUCCESS')
  expect(await network.account(account)).toMatchObject({ signers: [], numSubEntries: 0 })
})

test("requires the signature of an operation's source account", async () => {
  const operation = Operation.manageData({ name: 'a', value: 'b', source: other.publicKey() })
  expect(await submit([operation], by(account))).toBe('txFailed opBadAuth')
  expect(await submit([operation], by(account, other))).toBe('PENDING')
})

test('creates and uses an account in one transaction', async () => {
  const fresh = keypair('fresh')
  const transaction = await network.draft(account, [
    Operation.createAccount({ destination: fresh.publicKey(), startingBalance: '5' }),
    Operation.manageData({ name: 'a', value: 'b', source: fresh.publicKey() }),
  ])
  transaction.sign(account, fresh)
  expect((await network.settle(transaction)).status).toBe('SUCCESS')
})

test('fails a transaction whose signer was removed in the same ledger, and keeps its fee and sequence number', async () => {
  await configure(signer(other, 1))
  const before = await network.account(account)
  const removal = await network.build(other, signer(other, 0))
  const transaction = await paymentAppliedAfter(removal, other)
  for (const each of [transaction, removal]) expect(await network.send(each)).toBe('PENDING')
  network.close()
  const outcome = await network.find(transaction)
  if (outcome.status !== 'FAILED') throw new Error(`the transaction ended as ${outcome.status}`)
  expect(resultCodes(outcome.resultXdr)).toEqual(['txBadAuth'])
  expect(outcome.resultXdr.feeCharged).toBe(100n)
  expect(await network.account(account)).toMatchObject({ seqNum: before.seqNum + 1n, balance: before.balance - 100n })
})

/** A ledger orders accounts by the hashes of their envelopes. Tries amounts until the payment is applied later. */
async function paymentAppliedAfter(first: Transaction, signedBy: Keypair): Promise<Transaction> {
  const rank = (transaction: Transaction) => createHash('sha256').update(transaction.toEnvelope().toXdr()).digest('hex')
  for (let amount = 1; amount < 100; amount += 1) {
    const transaction = await network.draft(account, [pay(String(amount))])
    transaction.sign(signedBy)
    if (rank(transaction) > rank(first)) return transaction
  }
  throw new Error('no payment with a later hash')
}
